//! The static program needs no other file than the one that names the name servers.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Lab, take_turn};

use super::name_server;

/// joinprobe in a folder that is its whole world.
fn alone(lab: &Lab, folder: &Path, args: &[&str]) -> Result<Finished> {
    let script = "mount --bind \"$0\" \"$1/joinprobe\" && exec chroot \"$1\" /joinprobe \"${@:2}\"";
    let mut words: Vec<OsString> = ["--mount", "bash", "-c", script].map(Into::into).to_vec();
    words.extend([binary()?.into(), folder.into()]);
    words.extend(args.iter().map(Into::into));
    Running::start(&lab.joiner.namespace, Path::new("unshare"), words)?.wait()
}

/// Whether the program under test starts without a dynamic linker. `cargo xtask test` builds it so.
#[allow(
    clippy::print_stderr,
    reason = "the reason for a skipped test belongs in the test's output"
)]
fn is_static() -> Result<bool> {
    let program = binary()?;
    // Prints "statically linked" or "not a dynamic executable", or the libraries.
    let output = Command::new("ldd")
        .arg(&program)
        .stdin(Stdio::null())
        .output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if said.contains("statically linked") || said.contains("not a dynamic executable") {
        return Ok(true);
    }
    if std::env::var("CI").is_ok_and(|value| value == "true") {
        bail!("{} is linked dynamically", program.display());
    }
    eprintln!(
        "skipped: {} is linked dynamically; `cargo xtask test` builds a static one",
        program.display()
    );
    Ok(false)
}

#[test]
fn resolves_and_measures_in_an_empty_chroot() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "unshare", "chroot"])? else {
        return Ok(());
    };
    if !is_static()? {
        return Ok(());
    }
    let lab = Lab::builder().members(2).start()?;
    name_server::start(&lab.joiner.namespace)?;
    let folder = lab.folder().join("empty");
    fs::create_dir_all(folder.join("etc"))?;
    // What the program is mounted on.
    File::create(folder.join("joinprobe"))?;
    fs::write(
        folder.join("etc/resolv.conf"),
        format!("nameserver {}\n", name_server::ADDRESS),
    )?;
    let finished = alone(
        &lab,
        &folder,
        &["preflight", "-o", "json", "--etcd", "two.test:2379"],
    )?;
    ensure!(finished.code == Some(0), "{finished:?}");
    let report = finished.report()?;
    for node in &lab.member_nodes {
        let target = report.target(node.at(CLIENT_PORT))?;
        assert_eq!(target.text("/host"), "two.test");
        ensure!(target.number("/path/count")? >= 5, "{finished:?}");
    }
    let left: Vec<_> = fs::read_dir(&folder)?
        .collect::<Result<_, _>>()
        .context("gone")?;
    assert_eq!(left.len(), 2, "it wrote something");
    Ok(())
}
