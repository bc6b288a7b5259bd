//! What the kernel side measures of a probe, held against a capture.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use joinprobe_lab::capture::{Recording, SentSegment, Side};
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::link::DEVICE;
use joinprobe_lab::{Capture, Lab, attempts, on_time, take_turn};
use probe_user::bpf::{Observer, ObserverConfig, OwnProbes};
use probe_user::probe::{Marker, ProbeReport};
use probe_user::target::Role;
use probe_user::tls::ClientTls;

use crate::lab::PROGRAMS;
use crate::support::{Setup, run, target, tls};

/// One target's slot, as preflight uses it.
struct Slot {
    probes: OwnProbes,
    slot: u32,
    role: Role,
}

impl Marker for Slot {
    fn mark(&self, cookie: u64) {
        let marked = self.probes.mark(cookie, self.slot, self.role);
        assert!(marked.is_ok(), "{marked:?}");
    }

    fn end_pacing(&self, cookie: u64) {
        let ended = self.probes.end_pacing(cookie);
        assert!(ended.is_ok(), "{ended:?}");
    }

    fn forget(&self, cookie: u64) {
        self.probes.forget(cookie);
    }

    fn path_progress(&self) -> (u64, u32) {
        self.probes.path_progress(self.slot)
    }
}

/// The RTTs of the paced pieces but the last, as the capture has them; none of one that was sent again.
fn captured(recording: &Recording, address: SocketAddr) -> Result<Vec<Option<Duration>>> {
    let flows = recording.flows_to(address);
    let flow = flows.first().context("no connection")?;
    // The SYN comes first.
    let pieces = flow.sent_by(Side::Client);
    Ok(pieces[1..16].iter().map(SentSegment::rtt).collect())
}

/// Holds that every piece was a sample, in order, and that all but a few are as the capture has them: within 100 us + 1 %.
/// The others are those of acknowledgements that a busy kernel took up later than they were captured.
fn agrees(report: &ProbeReport, truth: &[Option<Duration>]) -> Result<()> {
    assert_eq!(report.failure, None);
    let values = &report.path_sequence;
    let all = values.len() == truth.len() && truth.iter().all(Option::is_some);
    on_time(all, || format!("{values:?} of {truth:?}"))?;
    let off = values.iter().zip(truth.iter().flatten());
    let off = off.filter(|(us, truth)| {
        let off = Duration::from_micros(u64::from(**us)).abs_diff(**truth);
        off > Duration::from_micros(100) + truth.mul_f64(0.01)
    });
    on_time(off.count() * 5 <= truth.len(), || {
        format!("{values:?} of {truth:?}")
    })
}

#[test]
fn every_piece_is_a_sample_of_the_network() -> Result<()> {
    let Some(_turn) = take_turn(&PROGRAMS)? else {
        return Ok(());
    };
    let lab = Lab::builder().members(1).start()?;
    let etcd = tls(
        Some(&lab.pki.etcd.pair.cert),
        Some(&lab.pki.healthcheck_client),
    )?;
    let api = tls(Some(&lab.pki.kubernetes.pair.cert), None)?;
    for rtt in [0, 10, 50, 100].map(Duration::from_millis) {
        lab.set_rtt(rtt);
        attempts(4, || one_round(&lab, &etcd, &api)).with_context(|| format!("{rtt:?}"))?;
    }
    Ok(())
}

/// Probes both at once, and holds the samples of each against the capture.
fn one_round(lab: &Lab, etcd: &ClientTls, api: &ClientTls) -> Result<()> {
    let member = target(Role::EtcdClient, lab.member_nodes[0].at(CLIENT_PORT));
    let server = target(Role::ApiServer, lab.apiserver_node.at(APISERVER_PORT));
    let capture = Capture::start(&lab.joiner.namespace, DEVICE)?;
    let (first, second) = lab.joiner.namespace.enter(|| -> Result<_> {
        let mut observer = Observer::attach(&ObserverConfig {
            own_only: true,
            ..ObserverConfig::default()
        })?;
        let mut slot = |role| -> Result<Slot> {
            Ok(Slot {
                slot: observer.new_slot().context("slot")?,
                probes: observer.own_probes(),
                role,
            })
        };
        let (first, second) = (slot(Role::EtcdClient)?, slot(Role::ApiServer)?);
        run(async {
            let mut one = Setup::new(etcd);
            one.marker = &first;
            let mut other = Setup::new(api);
            other.marker = &second;
            tokio::join!(one.probe(&member), other.probe(&server))
        })
    })??;
    let recording = capture.stop()?;
    let truth = |address| captured(&recording, address);
    agrees(&first, &truth(lab.member_nodes[0].at(CLIENT_PORT))?)?;
    agrees(&second, &truth(lab.apiserver_node.at(APISERVER_PORT))?)
}
