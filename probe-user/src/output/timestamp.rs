//! A point in time as it is written.

use std::fmt;
use std::time::SystemTime;

use serde::{Serialize, Serializer};

/// RFC 3339 in UTC, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A clock before 1970 or after 9999 is not worth a failed report.
        let time = self.0.max(SystemTime::UNIX_EPOCH).min(latest());
        write!(f, "{}", humantime::format_rfc3339_millis(time))
    }
}

/// The end of 9999, the last time RFC 3339 can write.
fn latest() -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(253_402_300_799)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clocks_out_of_range_are_clamped() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(Timestamp(early).to_string(), "1970-01-01T00:00:00.000Z");
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(Timestamp(late).to_string(), "9999-12-31T23:59:59.000Z");
    }
}
