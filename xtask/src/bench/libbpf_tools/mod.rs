//! libbpf-tools' `tcprtt` and `tcpconnlat`, which attach to functions of the kernel: not every kernel lets them, but
//! Debian's do. So they are compared in virtual machines, whose processors are emulated: only ratios count.

mod guest;

use std::env;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::figure::Figure;
use crate::packages::{self, KERNELS, LIBBPF_TOOLS};
use crate::test_kernels::archive::Archive;
use crate::test_kernels::{NEWEST, folder, initramfs, kernel, machine};
use crate::workspace::say;

pub(crate) use guest::{GuestArgs, run_as_guest};

/// From the oldest kernel that joinprobe runs on to the newest that Debian has.
const SERIES: [&str; 4] = ["5.10", "6.1", "6.12", NEWEST];
/// What the guest runs beside this program and joinprobe.
const PROGRAMS: [&str; 4] = ["ip", "bpftool", guest::TCPRTT, guest::TCPCONNLAT];
/// A line of the guest's that carries a figure as JSON.
const FIGURE: &str = "guest-figure ";
/// A line that says what could not be measured.
const FAILURE: &str = "guest-failure ";

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    packages::ensure_present(&[KERNELS, LIBBPF_TOOLS])?;
    // Not where `cargo xtask test-kernels` packs its own.
    let kernels = folder();
    let packed = kernels.join("bench");
    std::fs::create_dir_all(&packed)
        .with_context(|| format!("cannot make {}", packed.display()))?;
    let archive = Archive::open(&kernels)?;
    let own = env::current_exe()?;
    let own = [(&*own, "xtask"), (&*bench.joinprobe, "joinprobe")];
    let base = initramfs::base(&packed, &own, &PROGRAMS)?;
    let job = format!("xtask bench-guest --rounds {} 2>&1\n", bench.rounds);
    let mut figures = Vec::new();
    for series in SERIES {
        let kernel = kernel::get(&archive, series, &kernels)?;
        say(&format!("booting {}", kernel.package));
        let image = initramfs::complete(&base, &kernel, &packed, &job)?;
        let console = machine::run(&kernel, &image, &packed)?;
        let measured = figures.len();
        for line in console.text.lines() {
            if let Some((_, json)) = line.split_once(FIGURE) {
                let figure: Figure = serde_json::from_str(json.trim())
                    .with_context(|| format!("no figure: {line}; see {}", console.log.display()))?;
                figures.push(figure.on(kernel.name()));
            } else if let Some((_, reason)) = line.split_once(FAILURE) {
                say(&format!("{}: {}", kernel.name(), reason.trim()));
            }
        }
        if figures.len() == measured {
            bail!(
                "nothing was measured on {}: see {}",
                kernel.name(),
                console.log.display()
            );
        }
    }
    Ok(figures)
}
