//! Several outputs at once, each with its own failures.

use std::io;

use super::{EventReport, IntervalReport, Report};

/// Writes reports somewhere, in one format, for as long as a run lasts.
pub trait Exporter {
    /// What a message about it begins with: the flag and its value, or `standard output`.
    fn name(&self) -> String;

    /// Prepares, before there is anything to report.
    ///
    /// # Errors
    /// As for [`Exporter::interval`].
    fn start(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Writes one interval.
    ///
    /// # Errors
    /// See [`ExportError`]; the next report is tried all the same.
    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError>;

    /// Writes one event.
    ///
    /// # Errors
    /// As for [`Exporter::interval`].
    fn event(&mut self, _event: &EventReport) -> Result<(), ExportError> {
        Ok(())
    }

    /// Writes the verdict, the last thing a run has to say.
    ///
    /// # Errors
    /// As for [`Exporter::interval`].
    fn verdict(&mut self, report: &Report) -> Result<(), ExportError>;
}

/// Why an exporter could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Whoever read standard output has gone (`EPIPE`): nobody waits for the rest.
    #[error("its reader has gone")]
    ReaderGone,
    /// The operating system refused.
    #[error("cannot {action}: {error}{}", remedy(.error))]
    Io {
        /// What was tried, for example `write`.
        action: &'static str,
        /// The refusal.
        error: io::Error,
    },
    /// The destination is not one to write to; the text says why and what to do.
    #[error("{0}")]
    Refused(String),
    /// The format could not take the data.
    #[error("cannot encode: {0}")]
    Encode(String),
}

impl ExportError {
    /// Turns the refusal of `action` into an error, for `map_err`.
    pub fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action, error }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room, the next report is tried again"
        }
        io::ErrorKind::NotFound => "; create the folder again, it is looked for at the next report",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a place this user may write to"
        }
        io::ErrorKind::AddrInUse => {
            "; choose another port or end the program that holds it, it is tried again at the next report"
        }
        io::ErrorKind::AddrNotAvailable => "; choose an address of this host",
        _ => "",
    }
}

/// Whether a run has reason to go on.
#[must_use = "a run whose reader has gone ends"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It has.
    Continue,
    /// Standard output's reader has gone: end cleanly, the other exporters still want the verdict.
    ReaderGone,
}

/// The outputs of a run.
#[derive(Default)]
pub struct Exporters {
    outlets: Vec<Outlet>,
}

struct Outlet {
    exporter: Box<dyn Exporter>,
    /// The message it failed with last time.
    failing: Option<String>,
}

/// What it means that an exporter did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It wrote, so what was wrong is over.
    Recovery,
    /// It may have had nothing to write: many know no events.
    Nothing,
}

impl Exporters {
    /// Adds an output.
    pub fn add(&mut self, exporter: impl Exporter + 'static) {
        self.outlets.push(Outlet {
            exporter: Box::new(exporter),
            failing: None,
        });
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outlets.is_empty()
    }

    /// Lets every output prepare. Called once, from within the tokio runtime the run lives in.
    pub fn start(&mut self) -> Flow {
        self.each(Meaning::Nothing, |exporter| exporter.start())
    }

    /// Hands an interval to every output.
    pub fn interval(&mut self, report: &IntervalReport) -> Flow {
        self.each(Meaning::Recovery, |exporter| exporter.interval(report))
    }

    /// Hands an event to every output.
    pub fn event(&mut self, event: &EventReport) -> Flow {
        self.each(Meaning::Nothing, |exporter| exporter.event(event))
    }

    /// Hands the verdict to every output.
    pub fn verdict(&mut self, report: &Report) -> Flow {
        self.each(Meaning::Nothing, |exporter| exporter.verdict(report))
    }

    fn each(
        &mut self,
        success: Meaning,
        mut write: impl FnMut(&mut dyn Exporter) -> Result<(), ExportError>,
    ) -> Flow {
        let mut flow = Flow::Continue;
        self.outlets
            .retain_mut(|outlet| match write(outlet.exporter.as_mut()) {
                Ok(()) => {
                    if success == Meaning::Recovery && outlet.failing.take().is_some() {
                        log::warn!("{}: works again", outlet.exporter.name());
                    }
                    true
                }
                Err(ExportError::ReaderGone) => {
                    log::info!("{}: its reader has gone", outlet.exporter.name());
                    flow = Flow::ReaderGone;
                    false
                }
                Err(error) => {
                    let message = error.to_string();
                    // One message for one trouble, however many reports it lasts.
                    if outlet.failing.as_ref() != Some(&message) {
                        log::error!("{}: {message}", outlet.exporter.name());
                    }
                    outlet.failing = Some(message);
                    true
                }
            });
        flow
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::output::{Json, JsonLines, Textfile, VerdictOnly, samples};

    #[test]
    fn a_full_disk_does_not_stop_the_others() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        let mut exporters = Exporters::default();
        exporters.add(JsonLines::new(
            File::options().write(true).open("/dev/full").unwrap(),
        ));
        exporters.add(JsonLines::new(writer));
        assert_eq!(exporters.interval(&samples::interval()), Flow::Continue);
        assert_eq!(exporters.event(&samples::event()), Flow::Continue);
        assert_eq!(exporters.verdict(&samples::verdict()), Flow::Continue);
        let failure = exporters.outlets[0].failing.clone().unwrap();
        assert!(
            failure.contains("No space left") && failure.contains("make room"),
            "{failure}"
        );
        drop(exporters);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let kinds: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].clone())
            .collect();
        assert_eq!(kinds, ["interval", "event", "verdict"]);
    }

    #[test]
    fn an_event_that_is_not_written_is_no_recovery() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("gone");
        let mut exporters = Exporters::default();
        exporters.add(Textfile::new(&place.join("x.prom")).unwrap());
        let _ = exporters.interval(&samples::interval());
        let failure = exporters.outlets[0].failing.clone();
        assert!(failure.is_some());
        let _ = exporters.event(&samples::event());
        let _ = exporters.interval(&samples::interval());
        assert_eq!(exporters.outlets[0].failing, failure);
        std::fs::create_dir(&place).unwrap();
        let _ = exporters.interval(&samples::interval());
        assert_eq!(exporters.outlets[0].failing, None);
    }

    #[test]
    fn a_reader_that_goes_ends_the_run_but_not_the_other_outputs() {
        let (reader, writer) = UnixStream::pair().unwrap();
        let (mut kept, other) = UnixStream::pair().unwrap();
        let mut exporters = Exporters::default();
        exporters.add(JsonLines::new(writer));
        exporters.add(VerdictOnly::new(Json, other));
        drop(reader);
        assert_eq!(exporters.interval(&samples::interval()), Flow::ReaderGone);
        assert_eq!(exporters.verdict(&samples::verdict()), Flow::Continue);
        drop(exporters);
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1);
    }
}
