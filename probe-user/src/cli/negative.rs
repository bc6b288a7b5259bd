//! Negative values, which the command line takes for options.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What to say where `error` comes from a negative value: no option takes one, and advice on how to write one would be wrong.
#[must_use]
pub fn complaint(error: &clap::Error, typed: &[OsString]) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(refused))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    if !is_negative(refused) {
        return None;
    }
    // clap names the first letter alone.
    typed.windows(2).find_map(|pair| {
        let (option, value) = (pair[0].to_str()?, pair[1].to_str()?);
        (option.starts_with("--") && value.starts_with(refused.as_str())).then(|| {
            format!("{option} {value}: no value may be negative; write it without the minus")
        })
    })
}

fn is_negative(argument: &str) -> bool {
    let number = argument.strip_prefix('-');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Args;

    fn said_of(line: &str) -> Option<String> {
        let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        complaint(&Args::try_parse_from(&typed).unwrap_err(), &typed)
    }

    #[test]
    fn names_option_and_value() {
        let said = said_of("joinprobe preflight --etcd a:1 --retry-for -5s").unwrap();
        assert!(said.starts_with("--retry-for -5s: "), "{said}");
        let said = said_of("joinprobe watch --max-targets -3 --by process").unwrap();
        assert!(said.starts_with("--max-targets -3: "), "{said}");
    }

    #[test]
    fn leaves_other_errors_alone() {
        assert_eq!(said_of("joinprobe watch --interval --by process"), None);
        assert_eq!(said_of("joinprobe watch -x"), None);
        assert_eq!(said_of("joinprobe watch -5"), None);
    }
}
