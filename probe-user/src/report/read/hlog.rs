//! A line of an interval log.

use std::borrow::Cow;
use std::time::SystemTime;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::hdr;
use crate::output::LogTag;
use crate::report::record::{Place, Record, Samples, Values};

/// Reads one line; `Ok(None)` for a comment or the legend.
///
/// # Errors
/// One clause saying what is wrong with it.
pub(super) fn line(text: &str) -> Result<Option<Record>, String> {
    if text.starts_with(['#', '"']) || text.is_empty() {
        return Ok(None);
    }
    let text = format!("{text}\n");
    let entry = IntervalLogIterator::new(text.as_bytes()).next();
    let Some(Ok(LogEntry::Interval(entry))) = entry else {
        return Err("it is no line of an interval log".to_owned());
    };
    let tag = entry
        .tag()
        .and_then(|tag| LogTag::parse(tag.as_str()))
        .ok_or("its tag is not one of joinprobe's")?;
    let values =
        Values::named(tag.measure).ok_or_else(|| format!("there is no measure {}", tag.measure))?;
    let start = SystemTime::UNIX_EPOCH
        .checked_add(entry.start_timestamp())
        .ok_or("its time is out of range")?;
    Ok(Some(Record {
        place: Place {
            values,
            role: tag.role.to_owned(),
            target: tag.target.to_owned(),
            side: tag.side.to_owned(),
            process: tag.process.map(Cow::into_owned).unwrap_or_default(),
            node: tag.node.to_owned(),
        },
        phase: tag.phase.map(str::to_owned),
        start,
        length: entry.duration(),
        samples: Samples::Whole(hdr::decode(entry.encoded_histogram())?),
    }))
}
