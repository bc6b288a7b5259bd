//! Reads files that joinprobe wrote, whichever format each line has.

mod hdr;
mod hlog;
mod json;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::error::ReportError;
use super::record::Record;

/// Longer lines are none of ours: a line with 64 targets has some 200 kB.
const LONGEST_LINE: u64 = 16 << 20;

/// A run's verdict as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) node: String,
    pub(super) time: String,
    pub(super) verdict: String,
}

/// What a file yields.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) verdicts: Vec<Verdict>,
    /// Lines that could not be read: what a crash or a full disk leaves behind.
    pub(super) unreadable: u64,
    /// The first of them: number and reason.
    pub(super) first: Option<(u64, String)>,
}

/// Hands every record of the file to `take`; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or not one line of it can be used.
pub(super) fn file(path: &Path, mut take: impl FnMut(Record)) -> Result<Contents, ReportError> {
    let unreadable = |error| ReportError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let mut input: Box<dyn io::Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(unreadable)?)
    };
    let mut input = BufReader::new(&mut input);
    let mut contents = Contents::default();
    let mut usable = false;
    let mut with_intervals = BTreeSet::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = (&mut input).take(LONGEST_LINE);
        if limited.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        match read(&line) {
            Ok(Line::Nothing) => {}
            Ok(Line::Interval(node, records)) => {
                usable = true;
                with_intervals.insert(node);
                records.into_iter().for_each(&mut take);
            }
            Ok(Line::Verdict(verdict, records)) => {
                usable = true;
                // What its intervals said is not to be counted again.
                if !with_intervals.remove(&verdict.node) {
                    records.into_iter().for_each(&mut take);
                }
                contents.verdicts.push(verdict);
            }
            Err(reason) => {
                contents.unreadable += 1;
                contents.first.get_or_insert((number, reason));
                if !usable && contents.unreadable > MOST_UNREADABLE {
                    break;
                }
            }
        }
    }
    if usable {
        return Ok(contents);
    }
    let reason = match contents.first {
        Some((number, reason)) => format!("line {number}: {reason}"),
        None => "there is no interval in it".to_owned(),
    };
    Err(ReportError::NothingUsable {
        path: path.to_owned(),
        reason,
    })
}

/// A file that begins with so many unreadable lines is not one of ours.
const MOST_UNREADABLE: u64 = 1000;

enum Line {
    /// A comment or an event.
    Nothing,
    /// One interval of this node.
    Interval(String, Vec<Record>),
    Verdict(Verdict, Vec<Record>),
}

fn read(line: &[u8]) -> Result<Line, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(Line::Nothing);
    }
    if !text.starts_with('{') {
        return Ok(match hlog::line(text)? {
            Some(record) => Line::Interval(record.place.node.clone(), vec![record]),
            None => Line::Nothing,
        });
    }
    Ok(match json::line(text)? {
        json::Line::Interval { node, records } => Line::Interval(node, records),
        json::Line::Verdict {
            node,
            time,
            verdict,
            records,
        } => Line::Verdict(
            Verdict {
                node,
                time,
                verdict,
            },
            records,
        ),
        json::Line::Other => Line::Nothing,
    })
}
