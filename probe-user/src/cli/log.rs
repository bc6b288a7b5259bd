//! The log: standard error only, quiet unless asked.

use std::io::Write as _;

use std::sync::atomic::{AtomicU64, Ordering};

use ::log::LevelFilter;

static LINES: AtomicU64 = AtomicU64::new(0);

/// Lines logged so far: who redraws a terminal must not draw over them.
#[must_use]
pub fn lines() -> u64 {
    LINES.load(Ordering::Relaxed)
}

/// Starts logging. `verbose` counts `-v`; `bpf_log` lets the kernel side's debug lines through.
pub fn start(verbose: u8, bpf_log: bool) {
    let level = match verbose {
        0 => LevelFilter::Warn,
        1 => LevelFilter::Info,
        2 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    };
    let mut builder = env_logger::Builder::new();
    // Libraries speak only when debug lines are wanted.
    builder.filter_level(if verbose > 1 {
        level
    } else {
        LevelFilter::Error
    });
    builder.filter_module("probe_user", level);
    if bpf_log {
        builder.filter_module("joinprobe_ebpf", LevelFilter::Debug);
    }
    builder.format(|out, record| {
        LINES.fetch_add(1, Ordering::Relaxed);
        let time = humantime::format_rfc3339_millis(std::time::SystemTime::now());
        writeln!(
            out,
            "joinprobe: {time} {}: {}",
            record.level().as_str().to_lowercase(),
            record.args()
        )
    });
    // A second logger is refused; the first one, if a host program set it, stays.
    let _ = builder.try_init();
}
