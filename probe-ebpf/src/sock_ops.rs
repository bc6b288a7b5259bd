//! The `sock_ops` program: tells the callbacks apart.

use aya_ebpf::bindings::{
    BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB,
    BPF_SOCK_OPS_RETRANS_CB, BPF_SOCK_OPS_RTT_CB, BPF_SOCK_OPS_STATE_CB,
    BPF_SOCK_OPS_TCP_CONNECT_CB,
};
use aya_ebpf::macros::sock_ops;
use aya_ebpf::programs::SockOpsContext;

use crate::context::Context;
use crate::{connect, flow, rtt};

/// Runs for every TCP socket of the host when it connects or is established, and more often for those it flagged.
#[sock_ops]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_ops(ctx: SockOpsContext) -> u32 {
    let ctx = Context::new(ctx.ops);
    match ctx.op() {
        BPF_SOCK_OPS_RTT_CB => rtt::sampled(ctx),
        BPF_SOCK_OPS_TCP_CONNECT_CB => connect::connecting(ctx),
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB => connect::connected(ctx),
        BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB => connect::accepted(ctx),
        BPF_SOCK_OPS_RETRANS_CB => {
            if let Some(flow) = flow::find(ctx) {
                flow.count_retransmits(ctx);
                flow.count_segments(ctx, 1);
            }
        }
        BPF_SOCK_OPS_STATE_CB => connect::state_changed(ctx),
        _ => {}
    }
    // Any other value would tell the kernel that the callback is answered.
    1
}
