//! Files that are none of joinprobe's, or come twice, or never end.

use std::fs;
use std::path::Path;

use super::{config, files, report};
use crate::exit::Exit;

#[test]
fn a_file_named_twice_is_refused_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let (hlog, _) = files(&folder);
    let link = folder.path().join("link.hlog");
    std::os::unix::fs::symlink(&hlog, &link).unwrap();
    for again in [&hlog, &link] {
        let error = report(&config(&[&hlog, again])).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.to_string().contains("the same file"), "{error}");
    }
}

#[test]
fn what_has_no_end_is_refused_soon() {
    let folder = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    let (hlog, _) = files(&folder);
    let good = fs::read(&hlog).unwrap();
    let endless = |reason: &str, begin: &[u8], again: &[u8]| {
        let pipe = folder.path().join("pipe");
        let _ = fs::remove_file(&pipe);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        std::thread::scope(|scope| {
            let (name, many) = (&pipe, again.repeat(8192 / again.len() + 1));
            scope.spawn(move || {
                use std::io::Write as _;
                let mut pipe = fs::OpenOptions::new().write(true).open(name).unwrap();
                let _ = pipe.write_all(begin);
                // The reader closes its end when it has seen enough.
                while pipe.write_all(&many).is_ok() {}
            });
            let error = report(&config(&[&pipe])).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains(reason), "{error}");
        });
    };
    endless("longer than 16 MiB", b"", b"\0");
    endless("longer than 16 MiB", &good, b"x");
    endless("no line of an interval log", &good, b"y\n");
    endless("no interval", b"", b"\n");
    for device in ["/dev/zero", "/dev/null"] {
        let error = report(&config(&[Path::new(device)])).unwrap_err();
        assert!(error.to_string().contains("a device"), "{error}");
    }
    let large = folder.path().join("large");
    fs::File::create(&large)
        .unwrap()
        .set_len((4 << 30) + 1)
        .unwrap();
    let error = report(&config(&[&large])).unwrap_err();
    assert!(error.to_string().contains("larger than 4 GiB"), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn bad_files_get_one_sentence_and_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad");
    let wrong_schema = r#"{"schema":"other/v1","kind":"interval"}"#;
    let no_time = r#"{"schema":"joinprobe/v1","kind":"interval","time":"yesterday"}"#;
    let bomb = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for (bytes, reason) in [
        (&b""[..], "no interval"),
        (b"\n\n", "no interval"),
        (b"#only a comment\n", "no interval"),
        (b"\x7fELF\x02\x01\xff\xfe", "not text"),
        (b"hello\n", "no line of an interval log"),
        (b"{}\n", "no joinprobe record"),
        (b"{\"schema\":1}", "no joinprobe record"),
        (wrong_schema.as_bytes(), "reads joinprobe/v1"),
        (no_time.as_bytes(), "yesterday"),
        (bomb.as_bytes(), "no joinprobe record"),
        (b"Tag=A,1.0,1.0,1.0,HISTFAAA\n", "tag"),
        (b"1.0,1.0,1.0,HISTFAAA\n", "tag"),
        (
            b"Tag=node=a;role=b;target=c;side=d;measure=e,1.0,1.0,1.0,x\n",
            "no measure e",
        ),
        (
            b"Tag=node=a;role=b;target=c;side=d;measure=path,1.0,1.0,1.0,x\n",
            "base64",
        ),
        (
            b"Tag=node=a;role=b;target=c;side=d;measure=path,18446744073709551615.0,1.0,1.0,x\n",
            "out of range",
        ),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = report(&config(&[&path])).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        let text = error.to_string();
        assert!(
            text.contains(reason) && text.contains("bad"),
            "{reason}: {text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
    for path in [folder.path(), Path::new("/no/such/file")] {
        let error = report(&config(&[path])).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert!(error.to_string().contains("cannot read"), "{error}");
    }
}
