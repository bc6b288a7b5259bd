//! The `sock_ops` programs, of which one is loaded: they tell the callbacks apart.

use core::hint::cold_path;

use aya_ebpf::bindings::{
    BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB,
    BPF_SOCK_OPS_RETRANS_CB, BPF_SOCK_OPS_RTT_CB, BPF_SOCK_OPS_STATE_CB,
    BPF_SOCK_OPS_TCP_CONNECT_CB,
};
use aya_ebpf::macros::sock_ops;
use aya_ebpf::programs::SockOpsContext;

use crate::context::{Context, Rights};
use crate::{connect, flow, rtt};

/// Runs for every TCP socket of the host when it connects or is established, and more often for those it flagged.
#[sock_ops]
#[inline(always)]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_ops(ctx: SockOpsContext) -> u32 {
    called(Context::new(ctx.ops, Rights::All))
}

/// The same where kernel memory may not be read, for want of `CAP_PERFMON`.
#[sock_ops]
#[inline(always)]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_plain(ctx: SockOpsContext) -> u32 {
    called(Context::new(ctx.ops, Rights::Plain))
}

/// The same where network namespaces have no names either: before 5.15.
#[sock_ops]
#[inline(always)]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_least(ctx: SockOpsContext) -> u32 {
    called(Context::new(ctx.ops, Rights::Least))
}

#[inline(always)]
fn called(ctx: Context) -> u32 {
    // Nearly all calls are for samples: they are not to wait for other comparisons, nor to jump over other code.
    if ctx.op() == BPF_SOCK_OPS_RTT_CB {
        rtt::sampled(ctx);
        return 1;
    }
    cold_path();
    match ctx.op() {
        BPF_SOCK_OPS_TCP_CONNECT_CB => connect::connecting(ctx),
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB => connect::connected(ctx),
        BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB => connect::accepted(ctx),
        BPF_SOCK_OPS_RETRANS_CB => {
            if let Some(flow) = flow::find(ctx) {
                flow.count_retransmits(ctx);
                flow.count_segments(ctx);
            }
        }
        BPF_SOCK_OPS_STATE_CB => connect::state_changed(ctx),
        _ => {}
    }
    // Any other value would tell the kernel that the callback is answered.
    1
}
