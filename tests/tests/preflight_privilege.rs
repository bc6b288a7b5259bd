//! What a preflight may do, and what it says when it may not.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::bpf::{Cgroup, OtherProgram};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::{Impairment, Lab, take_turn};

/// Runs the usual preflight through setpriv with these options.
fn run_with(lab: &Lab, program: &Path, privileges: &[&str]) -> Result<Finished> {
    let mut words: Vec<OsString> = privileges.iter().map(Into::into).collect();
    words.extend(["--".into(), program.into()]);
    words.extend(lab.preflight_args());
    words.extend(["-o".into(), "json".into()]);
    Running::start(&lab.joiner.namespace, Path::new("setpriv"), words)?.wait()
}

fn lab() -> Result<Lab> {
    Lab::builder()
        .shape(Impairment::half_of_rtt(Duration::from_millis(5)))
        .start()
}

#[test]
fn two_capabilities_are_enough() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "setpriv"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let only = "-all,+bpf,+net_admin";
    let run = run_with(
        &lab,
        &binary()?,
        &["--inh-caps", only, "--bounding-set", only],
    )?;
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.report()?;
    for target in report.targets() {
        assert_eq!(target.number("/handshake/count")?, 1, "{target:?}");
        assert!(target.number("/path/count")? >= 14, "{target:?}");
    }
    Ok(())
}

#[test]
fn neither_root_nor_capabilities() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "setpriv"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let nobody = [
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--inh-caps",
        "-all",
    ];
    // Where everybody may start it: the build folder may be closed to others.
    let folder = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()?;
    let program = folder.path().join("joinprobe");
    std::fs::copy(binary()?, &program)?;
    let mut words: Vec<OsString> = nobody.iter().map(Into::into).collect();
    words.extend(["--".into(), program.into()]);
    words.extend(["preflight", "--etcd", "10.1.0.1:2379", "--timeout", "5s"].map(Into::into));
    let run = Running::start(&lab.joiner.namespace, Path::new("setpriv"), words)?.wait()?;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert_eq!(run.stderr.trim_end().lines().count(), 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("root") && run.stderr.contains("CAP_"),
        "{}",
        run.stderr
    );
    Ok(())
}

#[test]
fn a_cgroup_that_another_program_owns() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd", "bpftool"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let cgroup = Cgroup::enter()?;
    let other = OtherProgram::load(lab.folder())?;
    let attached = other
        .attach(cgroup.path(), false)
        .context("cannot own the test's cgroup")?;
    let mut args = lab.preflight_args();
    args.extend(["--cgroup".into(), cgroup.path().into()]);
    let run = lab.run_joinprobe(args)?;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert_eq!(run.stderr.trim_end().lines().count(), 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("lab_other"),
        "it names the program: {}",
        run.stderr
    );
    assert!(
        !run.stderr.contains("root or"),
        "and does not blame missing rights: {}",
        run.stderr
    );
    drop(attached);
    Ok(())
}
