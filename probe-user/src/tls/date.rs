//! Dates as certificates state them.

use time::OffsetDateTime;

/// Seconds since 1970 as `2026-12-01T20:00:00Z`; the bare number where no calendar reaches.
pub(crate) fn utc(seconds: i64) -> String {
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(
        |_| format!("{seconds} s after 1970"),
        |at| {
            format!(
                "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                at.year(),
                u8::from(at.month()),
                at.day(),
                at.hour(),
                at.minute(),
                at.second()
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_rfc_3339() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(1_796_155_200), "2026-12-01T20:00:00Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59Z");
        assert_eq!(utc(i64::MAX), format!("{} s after 1970", i64::MAX));
    }
}
