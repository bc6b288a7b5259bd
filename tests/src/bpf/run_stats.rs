//! How often BPF programs run, and how long.

use anyhow::{Context, Result};

use crate::programs::command;

/// The kernel's counting of program runs; dropping it restores what was set before.
#[derive(Debug)]
pub struct Statistics {
    before: String,
}

impl Statistics {
    const SETTING: &str = "/proc/sys/kernel/bpf_stats_enabled";

    /// Turns it on for the whole host. Each run then costs a little more.
    ///
    /// # Errors
    /// When the setting cannot be written.
    pub fn on() -> Result<Self> {
        let before = std::fs::read_to_string(Self::SETTING)?;
        std::fs::write(Self::SETTING, "1")
            .with_context(|| format!("cannot write {}", Self::SETTING))?;
        Ok(Self { before })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::SETTING, &self.before);
    }
}

/// A program's runs while [`Statistics`] were on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStats {
    /// How often it ran.
    pub runs: u64,
    /// How long all runs took, in nanoseconds.
    pub nanoseconds: u64,
}

impl RunStats {
    /// Of one program.
    ///
    /// # Errors
    /// When the program is gone.
    pub fn of(program: u32) -> Result<Self> {
        let output = command("bpftool")
            .args(["-j", "prog", "show", "id", &program.to_string()])
            .output()?;
        let shown: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("bpftool printed no JSON")?;
        // Left out while 0.
        let number = |key| {
            shown
                .get(key)
                .and_then(serde_json::Value::as_u64)
                .unwrap_or(0)
        };
        Ok(Self {
            runs: number("run_cnt"),
            nanoseconds: number("run_time_ns"),
        })
    }

    /// What came since an earlier moment.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            runs: self.runs.saturating_sub(earlier.runs),
            nanoseconds: self.nanoseconds.saturating_sub(earlier.nanoseconds),
        }
    }

    /// Two programs' together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            nanoseconds: self.nanoseconds + other.nanoseconds,
        }
    }

    /// How long all runs took, in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        std::time::Duration::from_nanos(self.nanoseconds).as_secs_f64()
    }

    /// The mean of a run, in nanoseconds; 0 without a run.
    #[must_use]
    pub fn mean_nanoseconds(self) -> f64 {
        if self.runs == 0 {
            return 0.0;
        }
        #[allow(
            clippy::cast_precision_loss,
            reason = "counts of runs stay far below 2^52"
        )]
        let runs = self.runs as f64;
        self.seconds() * 1e9 / runs
    }
}

/// How often a program ran since [`Statistics`] were turned on.
///
/// # Errors
/// When the program is gone.
pub fn run_count(program: u32) -> Result<u64> {
    Ok(RunStats::of(program)?.runs)
}
