//! Durations as users write them.

use std::time::Duration;

/// Parses `10s`, `250ms`, `1m 30s`; a number needs its unit.
///
/// # Errors
/// One sentence with the reason and an example.
pub(super) fn parse(input: &str) -> Result<Duration, String> {
    if input.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    if input.trim_start().starts_with('-') {
        return Err(
            "it may not be negative; write it without the minus, for example 10s".to_owned(),
        );
    }
    humantime::parse_duration(input)
        .map_err(|error| format!("{error}; write a number with its unit, for example 10s or 250ms"))
}

/// As [`parse`], and longer than zero.
///
/// # Errors
/// Also when the duration is zero.
pub(super) fn parse_positive(input: &str) -> Result<Duration, String> {
    match parse(input)? {
        Duration::ZERO => Err("it must be longer than zero, for example 10s".to_owned()),
        duration => Ok(duration),
    }
}

/// As [`parse`], and at least 100 ms: a report takes time, and nothing else would be done.
///
/// # Errors
/// Also when the duration is shorter.
pub(super) fn parse_interval(input: &str) -> Result<Duration, String> {
    match parse(input)? {
        duration if duration < Duration::from_millis(100) => {
            Err("it must be at least 100ms, for example 10s".to_owned())
        }
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_units_and_refuses_without() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert!(parse("10").unwrap_err().contains("unit"));
        assert!(parse("-1s").unwrap_err().contains("negative"));
        assert!(
            parse_positive("0s")
                .unwrap_err()
                .contains("longer than zero")
        );
        assert_eq!(parse_interval("100ms"), Ok(Duration::from_millis(100)));
        assert!(parse_interval("1ms").unwrap_err().contains("at least"));
    }
}
