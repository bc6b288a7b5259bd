//! Our own connection: one per target, paced, measured by the kernel like any other.

mod alert;
pub(crate) mod apiserver;
mod connect;
mod context;
mod etcd;
mod pacing;
mod patience;
mod refusal;
mod report;
mod resolve;
mod secure;
mod text;
mod wire;

use std::os::fd::AsFd as _;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::etcd::{LEADER_CHANGED, OneConnection};
pub(crate) use self::patience::unless_hasty;
pub(crate) use self::wire::{Wire, WireStream};
pub use context::{Enough, EtcdRead, Extent, Marker, NoMarker, Pacing, ProbeContext};
pub use patience::{MIN_PATIENCE, TOO_SHORT};
pub use report::{
    ClientCertificate, EtcdAnswer, ProbeFailure, ProbeReport, Stage, Stages, TlsState,
};
pub use resolve::{Resolved, Resolver};

use self::connect::Connected;
use self::secure::{Handshake, Secured};
use crate::bpf::tcp_segments;
use crate::target::{Role, Target};

/// Least and most time that is kept back for closing politely.
const CLOSING: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How long the HTTP/2 layer may take to write its last frames. It waits for nobody: they fit the send buffer.
const GOODBYE: Duration = Duration::from_millis(200);

/// Makes one connection to the target and takes it as far as the role, the credentials and the server allow.
///
/// Returns at the context's deadline at the latest; the report then says which stage was cut short. May be called again
/// for the same target. Dropping the future closes the connection at once, impolitely.
pub async fn probe(target: &Target, context: &ProbeContext<'_>) -> ProbeReport {
    let mut report = ProbeReport::new(context.dns);
    let Some(address) = target.address else {
        report.failure = Some(ProbeFailure {
            stage: Stage::Dns,
            result: "unresolved",
            text: format!("`{}` has no address to dial", target.spec.host),
        });
        return report;
    };
    let begun = Instant::now();
    let connected = match connect::connect(target, address, context).await {
        Ok(connected) => connected,
        Err(failure) => {
            report.failure = Some(unless_hasty(failure, target, begun, context.deadline));
            return report;
        }
    };
    report.stages.tcp = Some(connected.took);
    let close_for = (3 * connected.took).clamp(CLOSING.0, CLOSING.1);
    let until = work_until(context.deadline, close_for);
    report.failure = converse(target, context, &connected, until, &mut report)
        .await
        .err()
        .map(|failure| unless_hasty(failure, target, begun, until));
    report.segments = tcp_segments(connected.wire.socket.as_fd()).ok();
    let closed_by = context.deadline.min(Instant::now() + close_for);
    connected.wire.close(closed_by).await;
    report
}

/// When work must stop so that closing fits before the deadline; never more than half of what is left goes to closing.
fn work_until(deadline: Instant, close_for: Duration) -> Instant {
    let left = deadline.saturating_duration_since(Instant::now());
    deadline
        .checked_sub(close_for.min(left / 2))
        .unwrap_or(deadline)
}

/// Everything between connecting and closing.
async fn converse(
    target: &Target,
    context: &ProbeContext<'_>,
    connected: &Connected<'_>,
    until: Instant,
    report: &mut ProbeReport,
) -> Result<(), ProbeFailure> {
    let handshake = Handshake {
        target,
        context,
        wire: &connected.wire,
        marked: &connected.marked,
        round_trip: connected.took,
        until,
    };
    let Some(Secured {
        mut stream,
        dropped,
    }) = handshake.run(report).await?
    else {
        return Ok(());
    };
    let full = context.extent == Extent::Full;
    let outcome = match target.spec.role {
        Role::EtcdClient if full && context.tls.shown().is_some() && context.etcd_read.take() => {
            etcd::read(target, stream, until, report).await
        }
        Role::ApiServer if full => apiserver::readyz(target, stream, until, report).await,
        _ => {
            // close_notify; a server that does not take even that is closed on without it.
            let _ = timeout_at(until, stream.shutdown()).await;
            return Ok(());
        }
    };
    // The HTTP/2 connection says goodbye in a task of its own; closing the wire under it would cut it short.
    let _ = timeout_at(until.min(Instant::now() + GOODBYE), dropped).await;
    outcome
}
