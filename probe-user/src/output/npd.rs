//! `-o npd`: a custom plugin of node-problem-detector, docs/formats.md.

use std::io::{self, Write};

use super::headline::{Headline, brief, one_line};
use super::{Render, Report};

/// What node-problem-detector keeps of a message unless `max_output_length` says otherwise, bytes.
pub const NPD_MESSAGE: usize = 80;

/// One message of at most [`NPD_MESSAGE`] bytes; the state is the exit code, see [`Contract`](crate::exit::Contract).
#[derive(Clone, Copy, Debug)]
pub struct Npd;

impl Npd {
    /// Writes the message of a run that came to no verdict.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn refuse(error: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", cut(&one_line(error)))?;
        out.flush()
    }
}

impl Render for Npd {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let message = Headline::of(report).map_or_else(
            || "nothing was checked".to_owned(),
            |headline| message(&headline),
        );
        writeln!(out, "{}", cut(&format!("{}: {message}", report.verdict)))?;
        out.flush()
    }
}

/// The number first: a long address is what may be cut.
fn message(headline: &Headline<'_>) -> String {
    let finding = headline.finding;
    let of_target = match headline.subject() {
        subject if subject.is_empty() => String::new(),
        subject => format!(", {subject}"),
    };
    match finding.amount {
        Some(amount) => {
            let limit = amount
                .limit
                .map(|limit| format!(" (limit {})", brief(limit, amount.unit)))
                .unwrap_or_default();
            let value = brief(amount.value, amount.unit);
            format!("{} {value}{limit}{of_target}", short_name(finding.id))
        }
        None => headline.sentence(),
    }
}

/// A finding's id in fewer characters; the target's role says the rest.
fn short_name(id: &str) -> String {
    let id = id
        .strip_prefix("etcd-")
        .or_else(|| id.strip_prefix("apiserver-"))
        .unwrap_or(id);
    id.strip_suffix("-rtt-median")
        .map_or_else(|| id.to_owned(), |measure| format!("{measure} RTT"))
}

fn cut(message: &str) -> &str {
    message
        .get(..message.floor_char_boundary(NPD_MESSAGE))
        .unwrap_or(message)
        .trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::samples;

    fn npd(report: &Report) -> String {
        let mut out = Vec::new();
        Npd.write(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reads_as_recorded() {
        insta::assert_snapshot!("npd_pass", npd(&samples::verdict()));
        insta::assert_snapshot!("npd_fail", npd(&samples::trouble()));
    }

    #[test]
    fn no_message_is_longer_than_the_detector_keeps() {
        let mut far = samples::trouble();
        for target in &mut far.targets {
            target.measured.target = format!("[{}]:2379", "fd00:".repeat(20));
        }
        let mut refused = Vec::new();
        Npd::refuse(&"möglicherweise\n".repeat(20), &mut refused).unwrap();
        let refused = String::from_utf8(refused).unwrap();
        for text in [npd(&far), refused, npd(&samples::nothing())] {
            let message = text.strip_suffix('\n').unwrap();
            assert!(message.len() <= NPD_MESSAGE, "{} bytes", message.len());
            assert!(!message.contains('\n') && !message.is_empty());
        }
    }
}
