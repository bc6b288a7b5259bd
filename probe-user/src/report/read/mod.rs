//! Reads files that joinprobe wrote, whichever format each line has.

mod hdr;
mod hlog;
mod json;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use serde::Serialize;

use super::error::ReportError;
use super::record::Record;

/// Longer lines are none of ours: a line with 64 targets has some 200 kB.
const LONGEST_LINE: u64 = 16 << 20;

/// More is not read: three targets every 10 s fill it with JSON lines in a month and a half.
const LARGEST_FILE: u64 = 4 << 30;

/// So many lines without a measurement, and more of them than of others, are none of joinprobe's files.
const MOST_IDLE: u64 = 1000;

/// A run's verdict as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) node: String,
    pub(super) time: String,
    pub(super) verdict: String,
    /// What it rests on; empty for a pass.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
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
    let nothing_usable = |reason| ReportError::NothingUsable {
        path: path.to_owned(),
        reason,
    };
    let input = open(path)?;
    let mut input = BufReader::new(input);
    let mut contents = Contents::default();
    let (mut usable, mut idle) = (0_u64, 0_u64);
    let mut with_intervals = BTreeSet::new();
    let mut line = Vec::new();
    let mut size = 0;
    for number in 1.. {
        line.clear();
        let mut limited = (&mut input).take(LONGEST_LINE);
        let length = limited.read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        if length == 0 {
            break;
        }
        size += length;
        if size > LARGEST_FILE {
            return Err(too_large(path));
        }
        if length == LONGEST_LINE {
            return Err(nothing_usable(format!(
                "line {number} is longer than 16 MiB"
            )));
        }
        match read(&line) {
            Ok(Line::Nothing) => idle += 1,
            Ok(Line::Event) => {}
            Ok(Line::Interval(node, records)) => {
                usable += 1;
                with_intervals.insert(node);
                records.into_iter().for_each(&mut take);
            }
            Ok(Line::Verdict(verdict, records)) => {
                usable += 1;
                // What its intervals said is not to be counted again.
                if !with_intervals.remove(&verdict.node) {
                    records.into_iter().for_each(&mut take);
                }
                contents.verdicts.push(verdict);
            }
            Err(reason) => {
                idle += 1;
                contents.unreadable += 1;
                contents.first.get_or_insert((number, reason));
            }
        }
        if idle > MOST_IDLE && idle > usable {
            usable = 0;
            break;
        }
    }
    if usable > 0 {
        return Ok(contents);
    }
    Err(nothing_usable(match contents.first {
        Some((number, reason)) => format!("line {number}: {reason}"),
        None => "there is no interval in it".to_owned(),
    }))
}

/// Opens a file with an end: a device has none.
fn open(path: &Path) -> Result<Box<dyn io::Read>, ReportError> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let refuse = |error| ReportError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let kind = std::fs::metadata(path).map_err(refuse)?;
    if kind.file_type().is_block_device() || kind.file_type().is_char_device() {
        return Err(ReportError::NothingUsable {
            path: path.to_owned(),
            reason: "it is a device".to_owned(),
        });
    }
    if kind.len() > LARGEST_FILE {
        return Err(too_large(path));
    }
    Ok(Box::new(File::open(path).map_err(refuse)?))
}

fn too_large(path: &Path) -> ReportError {
    ReportError::TooLarge {
        path: path.to_owned(),
        most: LARGEST_FILE >> 30,
    }
}

enum Line {
    /// Blank, or a comment.
    Nothing,
    /// An event, or a kind of line that came later than this version.
    Event,
    /// One interval of this node.
    Interval(String, Vec<Record>),
    Verdict(Verdict, Vec<Record>),
}

fn read(line: &[u8]) -> Result<Line, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let text = text.trim_start_matches('\u{feff}').trim();
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
        json::Line::Verdict { verdict, records } => Line::Verdict(verdict, records),
        json::Line::Other => Line::Event,
    })
}
