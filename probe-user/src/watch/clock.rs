//! From the kernel's clock to the wall's.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// The wall time of a `bpf_ktime_get_ns` (`CLOCK_MONOTONIC`) of this boot.
pub(super) fn wall_time(monotonic_ns: u64) -> SystemTime {
    let now = clock_gettime(ClockId::Monotonic);
    let now = Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    );
    let age = now.saturating_sub(Duration::from_nanos(monotonic_ns));
    let wall = SystemTime::now();
    wall.checked_sub(age).unwrap_or(wall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_ago_is_a_second_ago() {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap();
        let then = wall_time((seconds - 1) * 1_000_000_000);
        let age = SystemTime::now().duration_since(then).unwrap();
        assert!(age >= Duration::from_secs(1) && age < Duration::from_mins(1));
    }
}
