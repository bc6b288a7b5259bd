//! An attached observer with its reports.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use probe_common::event::{Event, EventKind};
use rustix::thread::CapabilitySet;

use super::WatchError;
use super::clock::wall_time;
use super::judge::Judge;
use super::ledger::Moment;
use super::phases::Phases;
use super::privilege;
use crate::bpf::{EventStream, KernelLog, Observer};
use crate::config::ObserveConfig;
use crate::output::{EventReport, Exporters, Flow, Interval, IntervalReport, Report};
use crate::preflight::{Memory, observer_report};
use crate::verdict::Verdict;

/// A connection that lived longer closed because it was done, which is no event.
const SHORT_LIFE: Duration = Duration::from_secs(10);

/// Measures and reports until it is finished.
pub struct Session<'a> {
    config: &'a ObserveConfig,
    observer: Observer,
    events: Option<EventStream>,
    kernel_log: Option<KernelLog>,
    exporters: Exporters,
    judge: Judge,
    attached: Memory,
    started: Instant,
    cut: Instant,
    last: Moment,
    /// Intervals that have ended and are not yet reported.
    pending: VecDeque<Cut>,
    left_out: u64,
    phases: Phases,
}

/// The end of an interval.
struct Cut {
    moment: Moment,
    end: SystemTime,
    length: Duration,
    elapsed: Duration,
    /// The phase that the interval lies in.
    phase: Option<String>,
}

/// How a session ended.
#[derive(Debug)]
pub struct Finished {
    /// The run's verdict.
    pub verdict: Verdict,
}

impl<'a> Session<'a> {
    /// Attaches. Everything that happens from then on is measured.
    ///
    /// # Errors
    /// The kernel side cannot be attached.
    pub fn attach(config: &'a ObserveConfig, exporters: Exporters) -> Result<Self, WatchError> {
        let mut observer = Observer::attach(&config.observer)?;
        let now = Instant::now();
        let wait = |what| move |error| WatchError::Wait { what, error };
        let events = observer.events().map_err(wait("events"))?;
        let kernel_log = observer
            .kernel_log()
            .map_err(wait("the kernel side's lines"))?;
        for limitation in observer.limitations() {
            log::warn!("{limitation}");
        }
        log::info!("attached to {}", observer.hierarchy().path().display());
        Ok(Self {
            config,
            observer,
            events,
            kernel_log,
            exporters,
            judge: Judge::new(config),
            attached: Memory::of_this_process(),
            started: now,
            cut: now,
            last: Moment::default(),
            pending: VecDeque::new(),
            left_out: 0,
            phases: Phases::default(),
        })
    }

    /// Lets the outputs prepare.
    pub fn start(&mut self) -> Flow {
        self.exporters.start()
    }

    /// Gives up what attaching needed, but for `besides`. Not before a command was started that shall have all of it.
    pub fn drop_capabilities(&self, besides: CapabilitySet) {
        privilege::drop_capabilities(self.config, self.observer.kernel_release(), besides);
    }

    /// Waits for the next event. Nothing is lost when the returned future is dropped.
    pub async fn next_event(&mut self) -> Event {
        if let Some(events) = &mut self.events {
            match events.next().await {
                Ok(event) => return event,
                Err(error) => {
                    log::error!("events can no longer be waited for: {error}; counts go on");
                    self.events = None;
                }
            }
        }
        std::future::pending().await
    }

    /// Reports an event.
    pub fn event(&mut self, event: &Event) -> Flow {
        let long = u128::from(event.waited_us) > SHORT_LIFE.as_micros();
        let closed = [EventKind::Closed as u8, EventKind::AdoptedClosed as u8];
        if closed.contains(&event.kind) && long {
            return Flow::Continue;
        }
        let time = wall_time(event.time_ns);
        let report = EventReport::new(&self.config.common.node, time, self.phases.current(), event);
        let Some(mut report) = report else {
            return Flow::Continue;
        };
        let left_out = self.observer.events_suppressed();
        report.left_out = left_out.saturating_sub(self.left_out);
        self.left_out = left_out;
        log::info!(
            "{} {} {} ({}): {} after {} us, {} SYN retransmits",
            report.side,
            report.role,
            report.target,
            report.event,
            report.outcome,
            report.waited_us,
            report.syn_retransmits
        );
        self.exporters.event(&report)
    }

    /// Ends the interval and reports it.
    pub fn report(&mut self) -> Flow {
        self.cut();
        self.report_pending()
    }

    /// Ends the interval and the phase; what comes next belongs to `phase`. Quick: [`Session::report_oldest`] does the
    /// rest.
    pub fn enter_phase(&mut self, phase: String) {
        if self.phases.is_new(&phase) {
            self.cut();
            self.phases.enter(phase);
        }
    }

    /// Whether an interval waits to be reported.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Reports the oldest interval that has ended. One at a time, so that phases that begin meanwhile are not kept
    /// waiting by several.
    pub fn report_oldest(&mut self) -> Flow {
        let flow = self.drain_events();
        if let Some(log) = &mut self.kernel_log {
            log.flush();
        }
        match self.pending.pop_front().map(|cut| self.report_cut(cut)) {
            Some(Flow::ReaderGone) => Flow::ReaderGone,
            _ => flow,
        }
    }

    fn report_pending(&mut self) -> Flow {
        let mut flow = self.drain_events();
        while self.is_behind() {
            if self.report_oldest() == Flow::ReaderGone {
                flow = Flow::ReaderGone;
            }
        }
        flow
    }

    fn cut(&mut self) {
        self.observer.look_at_earlier();
        let moment = match Moment::now(&self.observer) {
            Ok(moment) => moment,
            Err(error) => {
                log::error!("{error}; the next report covers this interval too");
                return;
            }
        };
        self.observer.next_interval();
        let now = Instant::now();
        self.pending.push_back(Cut {
            moment,
            end: SystemTime::now(),
            length: now - self.cut,
            elapsed: now - self.started,
            phase: self.phases.current().map(str::to_owned),
        });
        self.cut = now;
    }

    fn report_cut(&mut self, cut: Cut) -> Flow {
        let since = cut.moment.since(&self.last, self.config);
        let verdict = self.judge.interval(cut.end, cut.length, &since);
        let observer = observer_report(&self.observer, self.attached);
        self.phases.add(
            cut.phase.as_deref(),
            (cut.end, cut.length),
            &cut.moment,
            self.config,
            &observer.rtt_source,
        );
        let report = IntervalReport::new(Interval {
            node: &self.config.common.node,
            end: cut.end,
            length: cut.length,
            elapsed: cut.elapsed,
            phase: cut.phase.as_deref(),
            measured: since,
            verdict: &verdict,
            totals: cut.moment.totals(self.config),
            observer,
        });
        self.last = cut.moment;
        self.exporters.interval(&report)
    }

    /// Reports what is left and the verdict, and detaches.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        // Whoever has gone needs no telling; the others get all of it.
        let _ = self.report();
        let totals = self.last.totals(self.config);
        let verdict = self.judge.run(&totals);
        let mut report = Report::of_run(
            &self.config.common.node,
            SystemTime::now(),
            self.started.elapsed(),
            &totals,
            &verdict,
            observer_report(&self.observer, self.attached),
        );
        report.phases = self.phases.into_reports();
        let _ = self.exporters.verdict(&report);
        Finished {
            verdict: verdict.verdict,
        }
    }

    fn drain_events(&mut self) -> Flow {
        let mut flow = Flow::Continue;
        while let Some(event) = self.events.as_mut().and_then(EventStream::try_next) {
            if self.event(&event) == Flow::ReaderGone {
                flow = Flow::ReaderGone;
            }
        }
        flow
    }
}
