//! `--hlog PATH`: the interval log that HdrHistogram's tools read, format version 1.3.

mod file;
mod tag;

use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use self::file::LogFile;
pub(crate) use self::tag::LogTag;
use super::{ExportError, Exporter, IntervalReport, MeasuredReport, Report};
use crate::histogram;

/// Appends a line for every measure of every target that has samples in an interval.
///
/// Times are absolute (seconds since 1970), values microseconds.
pub struct HistogramLog {
    file: LogFile,
    serializer: V2DeflateSerializer,
    /// An interval was written, so the verdict has nothing to add.
    has_intervals: bool,
}

/// What the lines of one report have in common.
struct Span<'a> {
    node: &'a str,
    phase: Option<&'a str>,
    start: SystemTime,
    length: Duration,
}

impl HistogramLog {
    /// A log at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            file: LogFile::new(path),
            serializer: V2DeflateSerializer::new(),
            has_intervals: false,
        }
    }

    fn append<'a>(
        &mut self,
        span: &Span<'_>,
        targets: impl Iterator<Item = &'a MeasuredReport>,
    ) -> Result<(), ExportError> {
        let mut text = Vec::new();
        let mut log = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut text, &mut self.serializer)
            .map_err(ExportError::io("write"))?;
        for target in targets {
            span.write(target, &mut log)?;
        }
        let mut header = Vec::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[joinprobe: round trips in microseconds; tags are key=value pairs]")
            .with_start_time(span.start)
            .begin_log_with(&mut header, &mut self.serializer)
            .map_err(ExportError::io("write"))?;
        header.extend_from_slice(LEGEND);
        self.file.append(&header, &text)
    }
}

const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

type Writer<'a, 'b> = IntervalLogWriter<'a, 'b, Vec<u8>, V2DeflateSerializer>;

impl Span<'_> {
    fn write(&self, target: &MeasuredReport, log: &mut Writer<'_, '_>) -> Result<(), ExportError> {
        let since_1970 = self
            .start
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        // One range in every header: readers in other languages refuse to add histograms of a larger range.
        let mut full = histogram::full_range();
        let sampled = target.sampled.iter().flat_map(|sampled| sampled.measures());
        let all = target.measures().chain(sampled);
        for (measure, report) in all.filter(|(_, report)| report.count() > 0) {
            full.reset();
            full.add(&report.distribution)
                .map_err(|error| ExportError::Encode(error.to_string()))?;
            let tag = LogTag {
                node: self.node,
                role: target.role,
                target: &target.target,
                side: target.side,
                process: target.process_name().map(Into::into),
                measure,
                phase: self.phase,
            }
            .to_string();
            log.write_histogram(&full, since_1970, self.length, Tag::new(&tag))
                .map_err(|error| match error {
                    IntervalLogWriterError::IoError(error) => ExportError::io("write")(error),
                    IntervalLogWriterError::SerializeError(error) => {
                        ExportError::Encode(error.to_string())
                    }
                })?;
        }
        Ok(())
    }
}

impl Exporter for HistogramLog {
    fn name(&self) -> String {
        format!("--hlog {}", self.file.path().display())
    }

    fn start(&mut self) -> Result<(), ExportError> {
        self.file.check()
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), ExportError> {
        self.has_intervals = true;
        let length = Duration::from_micros(report.interval_us);
        let span = Span {
            node: &report.node,
            phase: report.phase.as_deref(),
            start: report.time.0.checked_sub(length).unwrap_or(report.time.0),
            length,
        };
        self.append(&span, report.targets.iter().map(|target| &target.measured))
    }

    fn verdict(&mut self, report: &Report) -> Result<(), ExportError> {
        if self.has_intervals {
            return Ok(());
        }
        let length = Duration::from_micros(report.duration_us);
        let span = Span {
            node: &report.node,
            phase: None,
            start: report.time.0.checked_sub(length).unwrap_or(report.time.0),
            length,
        };
        self.append(&span, report.targets.iter().map(|target| &target.measured))
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::output::samples;

    /// Every line's tag, start in seconds and maximum.
    fn read(path: &Path) -> Vec<(String, u64, f64)> {
        let bytes = std::fs::read(path).unwrap();
        IntervalLogIterator::new(&bytes)
            .map(Result::unwrap)
            .filter_map(|entry| match entry {
                LogEntry::Interval(line) => Some((
                    line.tag().unwrap().to_string(),
                    line.start_timestamp().as_secs(),
                    line.max(),
                )),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_interval_is_a_line_per_measure_with_samples() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rtt.hlog");
        let mut log = HistogramLog::new(&path);
        log.start().unwrap();
        log.interval(&samples::interval_number(1)).unwrap();
        log.interval(&samples::interval_number(2)).unwrap();
        log.verdict(&samples::verdict()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("#[StartTime: ").count(), 1);
        let lines = read(&path);
        // Three targets, four measures with samples, two intervals.
        assert_eq!(lines.len(), 24);
        let (tag, start, max) = &lines[0];
        assert_eq!(
            tag,
            "node=cp-4;role=etcd-client;target=10.1.0.2:2379;side=client;measure=handshake;phase=etcd"
        );
        assert_eq!(*start, 1_796_155_200);
        assert!((max - 10_239.0).abs() < 1.0, "{max}");
        assert_eq!(lines[12].1, 1_796_155_210);
    }

    #[test]
    fn a_run_without_intervals_logs_its_verdict() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rtt.hlog");
        HistogramLog::new(&path)
            .verdict(&samples::verdict())
            .unwrap();
        assert_eq!(read(&path).len(), 12);
    }

    #[test]
    fn a_second_run_appends_and_a_rotated_file_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rtt.hlog");
        for _ in 0..2 {
            HistogramLog::new(&path)
                .interval(&samples::interval())
                .unwrap();
        }
        assert_eq!(read(&path).len(), 24);
        let mut log = HistogramLog::new(&path);
        log.interval(&samples::interval()).unwrap();
        std::fs::rename(&path, folder.path().join("rtt.hlog.1")).unwrap();
        log.interval(&samples::interval()).unwrap();
        assert_eq!(read(&path).len(), 12);
        assert!(
            std::fs::read(&path)
                .unwrap()
                .starts_with(b"#[Histogram log")
        );
    }

    #[test]
    fn somebody_elses_file_and_a_full_disk_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "root:x:0:0\n").unwrap();
        let error = HistogramLog::new(&path).start().unwrap_err().to_string();
        assert!(error.contains("not a histogram log"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"root:x:0:0\n");
        let mut full = HistogramLog::new(Path::new("/dev/full"));
        let error = full.interval(&samples::interval()).unwrap_err().to_string();
        assert!(error.contains("No space left"), "{error}");
    }
}
