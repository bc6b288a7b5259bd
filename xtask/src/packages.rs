//! Programs that demo and tests need, and how they come onto a Debian or Ubuntu machine.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use joinprobe_lab::programs::{locate, unpacked};

use crate::privilege::{as_root, has_sudo, is_root};
use crate::workspace::{finish, say};

/// A program and the packages that have it: the first that can be had is taken.
pub(crate) struct Need {
    program: &'static str,
    packages: &'static [&'static str],
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Install,
    /// Unpacked under target/ only: installing it would start a service.
    Unpack,
}

const fn install(program: &'static str, packages: &'static [&'static str]) -> Need {
    Need {
        program,
        packages,
        how: How::Install,
    }
}

const fn unpack_only(program: &'static str, packages: &'static [&'static str]) -> Need {
    Need {
        program,
        packages,
        how: How::Unpack,
    }
}

/// What the lab needs.
pub(crate) const LAB: &[Need] = &[
    install("ip", &["iproute2"]),
    install("tcpdump", &["tcpdump"]),
    install("chrt", &["util-linux"]),
    unpack_only("etcd", &["etcd-server"]),
];

/// What the tests need beyond it.
pub(crate) const TESTS: &[Need] = &[
    install("bpftool", &["bpftool", "linux-tools-generic"]),
    install("setpriv", &["util-linux"]),
    install("unshare", &["util-linux"]),
    install("openssl", &["openssl"]),
    install("systemd-analyze", &["systemd"]),
    install("strace", &["strace"]),
    unpack_only("etcdctl", &["etcd-client"]),
    unpack_only("prometheus", &["prometheus"]),
    unpack_only("prometheus-node-exporter", &["prometheus-node-exporter"]),
];

/// What the benchmark needs beyond it: what joinprobe is compared with.
pub(crate) const BENCH: &[Need] = &[
    install("bpftrace", &["bpftrace"]),
    install("perf", &["linux-perf"]),
    install("ss", &["iproute2"]),
];

/// What is compared in virtual machines: tools that the kernel at hand may not run.
pub(crate) const LIBBPF_TOOLS: &[Need] = &[install("tcprtt", &["libbpf-tools"])];

/// What virtual machines with other kernels need.
pub(crate) const KERNELS: &[Need] = &[
    install("qemu-system-x86_64", &["qemu-system-x86"]),
    install("busybox", &["busybox-static"]),
    install("ldd", &["libc-bin"]),
];

/// Makes sure that the programs are there and says what it installs.
///
/// # Errors
/// When something is missing and cannot be installed; with what to do.
pub(crate) fn ensure_present(needs: &[&[Need]]) -> Result<()> {
    let missing: Vec<&Need> = needs
        .iter()
        .copied()
        .flatten()
        .filter(|need| locate(need.program).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<&str> = missing.iter().map(|need| need.program).collect();
    let programs = programs.join(", ");
    ensure!(
        locate("apt-get").is_some(),
        "{programs} missing, and this is no Debian or Ubuntu: install them and run this again"
    );
    ensure!(
        is_root() || has_sudo(),
        "{programs} missing: run this as root or with sudo, or install them yourself"
    );
    say("updating the package lists");
    // A list that cannot be fetched may not be the one needed: what follows tells.
    let _ = apt(&["update", "--quiet=2"]);
    for need in missing {
        provide(need).with_context(|| format!("cannot provide {}", need.program))?;
    }
    Ok(())
}

/// `PATH` with the unpacked programs and the folders of system programs, which a user's may lack.
///
/// # Errors
/// When the present one cannot be extended.
pub(crate) fn path() -> Result<OsString> {
    let old = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&old).chain([
        "/usr/sbin".into(),
        "/sbin".into(),
        unpacked().join("usr/bin"),
    ]);
    env::join_paths(folders).context("PATH holds a folder with a colon in its name")
}

fn provide(need: &Need) -> Result<()> {
    let package = need.packages.iter().find(|package| has_candidate(package));
    let Some(package) = package else {
        bail!("no package of {} can be had", need.packages.join(", "))
    };
    if need.how == How::Install {
        say(&format!(
            "installing package {package} for {}",
            need.program
        ));
        install_packages(&[package])?;
    } else {
        let folder = unpacked();
        say(&format!(
            "unpacking package {package} for {} into {}",
            need.program,
            folder.display()
        ));
        unpack(package)?;
    }
    ensure!(
        locate(need.program).is_some(),
        "package {package} does not bring it"
    );
    Ok(())
}

/// Installs Debian packages.
///
/// # Errors
/// When they cannot be installed.
pub(crate) fn install_packages(packages: &[&str]) -> Result<()> {
    let options = ["install", "--yes", "--quiet=2", "--no-install-recommends"];
    apt(&[&options, packages].concat())
}

fn apt(words: &[&str]) -> Result<()> {
    let mut line = as_root(&[("DEBIAN_FRONTEND", OsStr::new("noninteractive"))]);
    line.push("apt-get".into());
    line.extend(words.iter().map(OsString::from));
    let (program, args) = line.split_first().context("no command")?;
    finish(
        Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(to_stderr()?),
    )
}

/// What is said about the set-up belongs on stderr.
fn to_stderr() -> Result<OwnedFd> {
    rustix::io::dup(rustix::stdio::stderr()).context("stderr is closed")
}

fn unpack(package: &str) -> Result<()> {
    let folder = unpacked();
    let downloads = folder.join("downloads");
    std::fs::create_dir_all(&downloads)
        .with_context(|| format!("cannot make {}", downloads.display()))?;
    finish(
        Command::new("apt-get")
            .args(["download", "--quiet=2", package])
            .current_dir(&downloads)
            .stdout(to_stderr()?),
    )?;
    for entry in std::fs::read_dir(&downloads)? {
        finish(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(entry?.path())
                .arg(&folder),
        )?;
    }
    std::fs::remove_dir_all(&downloads)?;
    Ok(())
}

fn has_candidate(package: &str) -> bool {
    let policy = Command::new("apt-cache")
        .args(["policy", package])
        .env("LC_ALL", "C")
        .output();
    policy.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("Candidate:") && !text.contains("Candidate: (none)")
    })
}
