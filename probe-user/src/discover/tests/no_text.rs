//! Files that hold no text of ours, or are no files at all.

use std::os::unix::fs::symlink;

use super::malformed::{check, joining};
use super::*;

#[test]
fn files_that_are_no_text() {
    let file = "kubeadm-join-config.yaml";
    check(&joining(""), &[file, "it is empty"]);
    check(&joining(" \n\t\n"), &[file, "it is empty"]);
    check(&joining([0_u8, 1, 2, 3]), &[file, "not text"]);
    check(&joining([0xff, 0xfd, b'a']), &[file, "not text"]);
    check(&joining([0xff, 0xfe, b'a', 0]), &[file, "UTF-16", "UTF-8"]);
    check(&joining("# nothing\n"), &[file, "no document"]);
    check(&joining("---\n---\n"), &[file, "no document"]);
    check(&joining("hello"), &[file, "text where a mapping"]);
    check(&joining("- a\n- b\n"), &[file, "a list where a mapping"]);
    check(&joining("42\n"), &[file, "where a mapping"]);
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_text() {
    let text = join_config("v1beta3", "controlPlane: {}\n");
    let found = joining(format!("\u{feff}{text}")).discover().unwrap();
    assert_eq!(found.node, crate::discover::NodeKind::JoiningControlPlane);
    assert!(!found.targets.is_empty());
}

#[test]
fn what_was_saved_in_a_kubeconfigs_place() {
    let join = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  file:\n    kubeConfigPath: \
                /info.yaml\n";
    for (text, parts) in [
        (
            "kind: ConfigMap\ndata:\n  kubeconfig: 'a: b'\n",
            [
                "kind",
                "info.yaml",
                "the ConfigMap cluster-info",
                "jsonpath={.data.kubeconfig}",
            ],
        ),
        (
            "kind: Secret\ndata: {}\n",
            ["kind", "info.yaml", "not Config", "no kubeconfig"],
        ),
    ] {
        check(&joining(join).put("/info.yaml", text), &parts);
    }
}

#[test]
fn files_that_are_no_files() {
    let file = "kubeadm-join-config.yaml";
    let node = Node::new().put(&format!("{JOIN}/x"), "");
    check(&node, &[file, "it is a directory"]);

    let node = Node::new().put("/run/kubeadm/x", "");
    symlink("kubeadm-join-config.yaml", node.path(JOIN)).unwrap();
    check(&node, &[file, "cannot read", "symbolic links"]);

    let node = Node::new().put("/run/kubeadm/x", "");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        node.path(JOIN),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    check(&node, &[file, "not a regular file"]);

    let node = Node::new().put("/run/kubeadm/x", "");
    let sparse = std::fs::File::create(node.path(JOIN)).unwrap();
    sparse.set_len(100 * 1024 * 1024).unwrap();
    check(&node, &[file, "larger than 1 MiB"]);

    // A link that dangles is a file that is not there.
    let node = Node::new().put("/run/kubeadm/x", "");
    symlink("/nowhere", node.path(JOIN)).unwrap();
    assert!(node.discover().unwrap().targets.is_empty());

    // A device, by way of this host's own root.
    let hints = Hints {
        join_config: Some(PathBuf::from("/dev/zero")),
        kubeconfig: None,
    };
    let error = discover(&Root::default(), &hints)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("/dev/zero") && error.contains("not a regular file"),
        "{error}"
    );
}
