//! Values in the words of a finding.

use super::Unit;

/// Microseconds as milliseconds: three significant digits or a whole number, for example `0.42 ms`, `10.1 ms`, `1036 ms`.
pub(crate) fn ms(micros: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
    let ms = micros as f64 / 1000.0;
    let digits = match micros {
        0..10_000 => 2,
        10_000..100_000 => 1,
        _ => 0,
    };
    format!("{} ms", trimmed(ms, digits))
}

/// Parts per million as a percentage, for example `0.5 %`.
pub(crate) fn percent(parts_per_million: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
    let percent = parts_per_million as f64 / 10_000.0;
    format!("{} %", trimmed(percent, 2))
}

/// A value in its unit.
pub(crate) fn in_unit(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Micros => ms(value),
        Unit::PartsPerMillion => percent(value),
        Unit::Count => value.to_string(),
    }
}

/// `1 sample`, `15 samples`.
pub(crate) fn count(n: u64, singular: &str) -> String {
    if n == 1 {
        format!("1 {singular}")
    } else {
        format!("{n} {singular}s")
    }
}

fn trimmed(value: f64, digits: usize) -> String {
    let shown = format!("{value:.digits$}");
    if shown.contains('.') {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        shown
    }
}

/// Reads a value as users write it: `500us`, `80ms`, `1.5s`; `2%`; `3`. `None` when it is not one, or out of range.
pub(crate) fn parse_in_unit(written: &str, unit: Unit) -> Option<u64> {
    let scaled = |number: &str, factor: f64, most: f64| {
        // `parse` would also take signs, exponents, `inf` and `nan`.
        if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return None;
        }
        let value = number.trim().parse::<f64>().ok()? * factor;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be in range, and digits only"
        )]
        (value <= most).then(|| value.round() as u64)
    };
    match unit {
        Unit::Count => written.parse::<u32>().ok().map(u64::from),
        Unit::PartsPerMillion => scaled(written.strip_suffix('%')?.trim_end(), 1e4, 1e6),
        Unit::Micros => {
            let (number, factor) = if let Some(number) = written.strip_suffix("us") {
                (number, 1.0)
            } else if let Some(number) = written.strip_suffix("ms") {
                (number, 1e3)
            } else {
                (written.strip_suffix('s')?, 1e6)
            };
            // A limit above an hour is a slip of the pen.
            scaled(number.trim_end(), factor, 3.6e9)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_like_measurements() {
        for (micros, shown) in [
            (0, "0 ms"),
            (420, "0.42 ms"),
            (10_080, "10.1 ms"),
            (50_000, "50 ms"),
            (100_400, "100 ms"),
            (1_036_000, "1036 ms"),
        ] {
            assert_eq!(ms(micros), shown);
        }
        assert_eq!(percent(12_345), "1.23 %");
        assert_eq!(count(1, "sample"), "1 sample");
        assert_eq!(count(0, "sample"), "0 samples");
    }
}
