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

use std::io::Write;
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
        origin.verdicts.extend(contents.verdicts);
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
        let files = config.files.len();
        json::write(
            &merged,
            files,
            recommendation.as_ref(),
            SystemTime::now(),
            out,
        )?;
    } else {
        text::write(&merged, &origin, marks, out)?;
    }
    Ok(())
}
