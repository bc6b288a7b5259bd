//! `cargo xtask test-kernels`: the tests of tests/tests/kernel on Debian's kernels, each in a virtual machine, and on
//! the running one.

pub(crate) mod archive;
pub(crate) mod initramfs;
pub(crate) mod kernel;
pub(crate) mod machine;
mod outcome;
mod programs;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::packages::{self, KERNELS, LAB, TESTS};
use crate::privilege::{as_root, has_sudo, is_root};
use crate::workspace::{joinprobe, say, target};
use archive::Archive;
use outcome::Outcome;
use programs::PROGRAMS;

/// Asks for the newest kernel of all.
pub(crate) const NEWEST: &str = "newest";
/// How the test program is called, here and there: one test at a time, whose output is seen.
const TEST_OPTIONS: [&str; 2] = ["--test-threads=1", "--nocapture"];
/// What continuous integration runs.
const EVERY_TIME: [&str; 3] = ["5.10", "6.1", NEWEST];
/// What `cargo xtask test --full` runs.
const ALL: [&str; 4] = ["5.10", "6.1", "6.12", NEWEST];

/// Runs the kernel tests on Debian's kernels, each booted in a virtual machine, and on the running one.
///
/// Kernels are downloaded from the configured Debian mirror into target/kernels and nowhere installed. The machines
/// are emulated, so that this works inside virtual machines too. Prints the table of docs/kernel-support.md.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kernel series such as `6.1`, `newest`, or `running` for the one at hand
    #[arg(value_name = "VERSION", default_values = ["5.10", "6.1", "6.12", NEWEST, "running"])]
    versions: Vec<String>,
    /// Only the tests whose name contains this
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A kernel cannot be had or booted.
#[allow(clippy::print_stdout, reason = "the table is the command's output")]
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    packages::ensure_present(&[LAB, TESTS, KERNELS])?;
    let versions: Vec<&str> = args.versions.iter().map(String::as_str).collect();
    let outcomes = outcomes(&versions, args.test.as_deref(), &joinprobe()?)?;
    println!("{}", outcome::table(&outcomes));
    Ok(if outcomes.iter().all(Outcome::passed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What `cargo xtask test` runs of it; the running kernel is among its other tests.
///
/// # Errors
/// A kernel cannot be had or booted, or a test fails there.
pub(crate) fn every_time(joinprobe: &Path, full: bool) -> Result<()> {
    let versions: &[&str] = if full { &ALL } else { &EVERY_TIME };
    let outcomes = outcomes(versions, None, joinprobe)?;
    say(&format!("kernels:\n{}", outcome::table(&outcomes)));
    for outcome in outcomes {
        ensure!(
            outcome.passed(),
            "kernel {}: {}",
            outcome.kernel,
            outcome.failure()
        );
    }
    Ok(())
}

fn outcomes(versions: &[&str], only: Option<&str>, joinprobe: &Path) -> Result<Vec<Outcome>> {
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let tests = programs::kernel_tests()?;
    let mut archive = None;
    let mut base = None;
    let mut outcomes = Vec::new();
    for version in versions {
        if *version == "running" {
            outcomes.push(at_hand(&tests, only, joinprobe)?);
            continue;
        }
        if archive.is_none() {
            archive = Some(Archive::open(&folder)?);
        }
        let Some(archive) = &archive else { continue };
        let kernel = kernel::get(archive, version, &folder)?;
        if base.is_none() {
            say("packing the programs of the virtual machines");
            let own = [(&*tests, "kernel-tests"), (joinprobe, "joinprobe")];
            base = Some(initramfs::base(&folder, &own, &PROGRAMS)?);
        }
        let Some(base) = &base else { continue };
        say(&format!("booting {}", kernel.package));
        let image = initramfs::complete(base, &kernel, &folder, &job(only)?)?;
        let console = machine::run(&kernel, &image, &folder)?;
        outcomes.push(Outcome::read(kernel.name(), &console.text, console.log));
    }
    Ok(outcomes)
}

/// What a machine is to do: all tests, and those of lockdown once more when the kernel is locked down; or only some.
fn job(only: Option<&str>) -> Result<String> {
    let options = TEST_OPTIONS.join(" ");
    let only = only.unwrap_or_default();
    ensure!(
        only.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_:".contains(c)),
        "{only:?} is no part of a test's name"
    );
    let mut job = format!("kernel-tests {options} {only} 2>&1\n");
    if only.is_empty() {
        job += "if echo confidentiality > /sys/kernel/security/lockdown; then\n";
        writeln!(job, "kernel-tests {options} what_lockdown_takes 2>&1")?;
        job += "fi\n";
    }
    Ok(job)
}

/// Runs the same tests here.
fn at_hand(tests: &Path, only: Option<&str>, joinprobe: &Path) -> Result<Outcome> {
    ensure!(
        is_root() || has_sudo(),
        "the tests on the running kernel need root: run this as root or with sudo"
    );
    let path = packages::path()?;
    let mut words = as_root(&[
        ("PATH", path.as_os_str()),
        ("JOINPROBE_BIN", joinprobe.as_os_str()),
    ]);
    words.push(tests.into());
    words.extend(TEST_OPTIONS.map(Into::into));
    words.extend(only.map(Into::into));
    let (program, rest) = words.split_first().context("no command")?;
    say("testing the running kernel");
    let output = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .output()
        .context("cannot start the tests")?;
    let release = rustix::system::uname();
    let text = [&*output.stdout, &*output.stderr].concat();
    let log = folder().join("running.log");
    fs::write(&log, &text).with_context(|| format!("cannot write {}", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    Ok(Outcome::read(
        &release.release().to_string_lossy(),
        &text,
        log,
    ))
}

/// Where kernels are kept.
pub(crate) fn folder() -> PathBuf {
    env::var_os("JOINPROBE_KERNELS").map_or_else(|| target().join("kernels"), PathBuf::from)
}
