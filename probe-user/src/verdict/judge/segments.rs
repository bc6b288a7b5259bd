//! Segment sizes: whether the path carries full-size ones, as far as our own bytes show.

use crate::bpf::TcpSegments;
use crate::measure::TargetMeasurement;
use crate::probe::{ProbeReport, Stage};
use crate::verdict::{Finding, FindingState, Unit, text};

const ID: &str = "path-mtu";
/// Only the loopback interface carries packets as large as IP allows, and its segments are limited by buffers.
const LOOPBACK_MTU: u32 = 65_535;
const BLACK_HOLE: &str = "Small segments pass and large ones do not: something on the way carries only shorter packets \
                          and does not say so, or its ICMP messages are dropped. Compare the MTU of the interfaces and \
                          tunnels on the way (`ping -M do -s 1472` fails where 1500 bytes do not pass), lower it on \
                          this node, or let ICMP \"fragmentation needed\" and \"packet too big\" pass.";
/// Id: `path-mtu`; nothing where the path carries what this host's interface does.
pub(super) fn findings(measured: &TargetMeasurement) -> Option<Finding> {
    let probe = measured.probe.as_ref()?;
    let segments = probe.segments.as_ref()?;
    let target = &measured.target;
    if timed_out(probe) {
        return stalled(&target.to_string(), probe.chunks, segments);
    }
    let on_this_host = segments.path_mtu >= LOOPBACK_MTU;
    if on_this_host || segments.mss == 0 || segments.mss >= segments.own_mss {
        return None;
    }
    let text = format!(
        "segments to {target} carry at most {} bytes, although this host's interface allows {} (path MTU {}): the \
         server's interface is narrower, or a tunnel or load balancer on the way",
        segments.mss, segments.own_mss, segments.path_mtu
    );
    Some(Finding {
        value: Some(segments.mss.into()),
        unit: Unit::Count,
        ..Finding::plain(ID, FindingState::Pass, text)
    })
}

fn timed_out(probe: &ProbeReport) -> bool {
    probe
        .failure
        .as_ref()
        .is_some_and(|failure| failure.stage > Stage::Tcp && failure.result == "timed_out")
}

/// What a conversation that got stuck shows.
fn stalled(target: &str, chunks: u32, segments: &TcpSegments) -> Option<Finding> {
    let warn = |text| Some(Finding::plain(ID, FindingState::Warn, text).hint(BLACK_HOLE));
    if segments.out_of_order > 0 {
        return warn(format!(
            "{} of {target}'s answer came while a larger one before it never did: large segments from there are lost",
            text::count(segments.out_of_order.into(), "segment")
        ));
    }
    let sent_small = chunks > 1;
    if segments.unacknowledged > 0
        && segments.retransmits > 0
        && segments.bytes_received > 0
        && sent_small
    {
        return warn(format!(
            "{} to {target}, of up to {} bytes, got no acknowledgement, although {chunks} small ones did: large \
             segments to there are lost",
            text::count(segments.unacknowledged.into(), "segment"),
            segments.mss
        ));
    }
    if segments.bytes_received == 0 && segments.unacknowledged == 0 && sent_small {
        let text = format!(
            "{target} acknowledged all {chunks} small segments and nothing of its answer came: its server hangs, or \
             the answer is larger than the path carries"
        );
        return Some(Finding::plain(ID, FindingState::NotDecided, text).hint(BLACK_HOLE));
    }
    None
}
