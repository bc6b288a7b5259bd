//! Formats that are written to a stream: standard output, a pipe or a file that was redirected to.

use std::io::{self, Write};

use serde::Serialize;

use super::{EventReport, ExportError, Exporter, IntervalReport, Render, Report};

/// Writes to a stream whose reader may go away.
#[derive(Debug)]
pub(super) struct Stream<W> {
    out: W,
    /// What it is called in errors.
    name: String,
    /// The last write was cut short: what it left is not a whole line.
    torn: bool,
}

impl<W: Write> Stream<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            name: "standard output".to_owned(),
            torn: false,
        }
    }

    /// Names it in errors.
    pub(super) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Writes `bytes` and flushes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        let result = self.try_write(bytes);
        self.torn = result.is_err();
        result.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => ExportError::ReaderGone,
            _ => ExportError::io("write")(error),
        })
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.out.write_all(b"\n")?;
        }
        self.out.write_all(bytes)?;
        self.out.flush()
    }
}

/// JSON lines: every interval, event and verdict is one line, flushed.
#[derive(Debug)]
pub struct JsonLines<W> {
    stream: Stream<W>,
    line: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Lines to `out`.
    pub fn new(out: W) -> Self {
        Self {
            stream: Stream::new(out),
            line: Vec::new(),
        }
    }

    /// Names the stream in errors; by itself it is standard output.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.stream = self.stream.called(name);
        self
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), ExportError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)
            .map_err(|error| ExportError::Encode(error.to_string()))?;
        self.line.push(b'\n');
        self.stream.write(&self.line)
    }
}

impl<W: Write> Exporter for JsonLines<W> {
    fn name(&self) -> String {
        self.stream.name()
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        self.line(report)
    }

    fn event(&mut self, event: &EventReport) -> Result<(), ExportError> {
        self.line(event)
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        self.line(report)
    }
}

/// A format that has a word only for the verdict.
#[derive(Debug)]
pub struct VerdictOnly<R, W> {
    render: R,
    stream: Stream<W>,
}

impl<R: Render, W: Write> VerdictOnly<R, W> {
    /// `render`'s form of the verdict to `out`.
    pub fn new(render: R, out: W) -> Self {
        Self {
            render,
            stream: Stream::new(out),
        }
    }

    /// Names the stream in errors; by itself it is standard output.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.stream = self.stream.called(name);
        self
    }
}

impl<R: Render, W: Write> Exporter for VerdictOnly<R, W> {
    fn name(&self) -> String {
        self.stream.name()
    }

    fn interval(&mut self, _report: &IntervalReport) -> Result<(), ExportError> {
        Ok(())
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        let mut bytes = Vec::new();
        self.render
            .write(report, &mut bytes)
            .map_err(|error| ExportError::Encode(error.to_string()))?;
        self.stream.write(&bytes)
    }
}
