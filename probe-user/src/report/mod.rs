//! `joinprobe report`: saved measurements of one node or many, put together.

mod bars;
mod error;
mod html;
mod json;
mod merge;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod text;
mod timing;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use error::ReportError;

use self::merge::Merged;
use self::text::Origin;
use crate::config::ReportConfig;
use crate::output::Marks;

/// Reads the files, writes the report to `out`, and the page where one was asked for.
///
/// # Errors
/// See [`ReportError`].
pub fn run(config: &ReportConfig, marks: Marks, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut merged = Merged::new(config.per_node);
    let mut origin = Origin {
        files: config.files.len(),
        ..Origin::default()
    };
    refuse_twice(&config.files)?;
    for path in &config.files {
        merged.next_file();
        let contents = read::file(path, |record| merged.add(record))?;
        if let Some((number, reason)) = contents.first {
            log::warn!(
                "{}: {} of its lines could not be read and are left out; line {number}: {reason}",
                path.display(),
                contents.unreadable
            );
        }
        for verdict in contents.verdicts {
            // A copy of the run's file says nothing new.
            if !origin.verdicts.contains(&verdict) {
                origin.verdicts.push(verdict);
            }
        }
    }
    let recommendation = timing::recommendation(&merged, &config.timing);
    origin.advice = text::advice(recommendation.as_ref());
    if let Some(path) = &config.html {
        let page = html::page(&merged, &origin)?;
        std::fs::write(path, page).map_err(|error| ReportError::Unwritable {
            path: path.clone(),
            error,
        })?;
    }
    if config.json {
        json::write(
            &merged,
            &origin,
            recommendation.as_ref(),
            SystemTime::now(),
            out,
        )?;
    } else {
        text::write(&merged, &origin, marks, out)?;
    }
    Ok(())
}

/// What a file says is to be counted once, so it is not to be named twice, whatever it is called.
fn refuse_twice(files: &[PathBuf]) -> Result<(), ReportError> {
    let mut seen = BTreeMap::new();
    for path in files {
        let identity = if path == Path::new("-") {
            rustix::fs::fstat(io::stdin()).map(|known| (known.st_dev, known.st_ino))
        } else {
            rustix::fs::stat(path).map(|known| (known.st_dev, known.st_ino))
        };
        // What cannot be looked at cannot be read either, and is refused for that.
        let Ok(identity) = identity else { continue };
        if let Some(first) = seen.insert(identity, path) {
            return Err(ReportError::Twice {
                first: first.clone(),
                second: path.clone(),
            });
        }
    }
    Ok(())
}
