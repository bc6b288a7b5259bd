//! This process's memory, as the kernel counts it.

/// Resident memory in bytes: now (`VmRSS`) and at its highest (`VmHWM`); see proc(5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Now.
    pub resident: u64,
    /// At the highest.
    pub peak: u64,
}

impl Memory {
    /// Reads /proc/self/status; zeros where /proc is not mounted.
    #[must_use]
    pub fn of_this_process() -> Self {
        std::fs::read_to_string("/proc/self/status")
            .map(|status| Self::parse(&status))
            .unwrap_or_default()
    }

    fn parse(status: &str) -> Self {
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kibibytes| kibibytes * 1024)
        };
        Self {
            resident: field("VmRSS"),
            peak: field("VmHWM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kibibytes() {
        let memory = Memory::parse("Name:\tx\nVmHWM:\t    5120 kB\nVmRSS:\t    4096 kB\n");
        assert_eq!(
            memory,
            Memory {
                resident: 4096 * 1024,
                peak: 5120 * 1024
            }
        );
        assert_eq!(Memory::parse("VmRSS:\tjunk\n"), Memory::default());
    }

    #[test]
    fn this_process_has_some() {
        let memory = Memory::of_this_process();
        assert!(memory.resident > 0 && memory.peak >= memory.resident);
    }
}
