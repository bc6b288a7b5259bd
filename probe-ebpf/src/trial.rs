//! Finds out, on one connection that user space makes to itself, whether RTT callbacks carry the sample.

use aya_ebpf::bindings::{
    BPF_SOCK_OPS_RTT_CB, BPF_SOCK_OPS_RTT_CB_FLAG, BPF_SOCK_OPS_TCP_CONNECT_CB,
};
use aya_ebpf::macros::sock_ops;
use aya_ebpf::programs::SockOpsContext;
use probe_common::stats::{TRIAL_ANSWER_CELL, TRIAL_COOKIE_CELL, WITH_SAMPLE, WITHOUT_SAMPLE};

use crate::cells;
use crate::context::{Context, Rights};

/// Attached only while that connection lasts.
#[sock_ops]
#[allow(clippy::needless_pass_by_value, reason = "the macro calls it so")]
fn joinprobe_trial(ctx: SockOpsContext) -> u32 {
    let ctx = Context::new(ctx.ops, Rights::Least);
    match ctx.op() {
        BPF_SOCK_OPS_TCP_CONNECT_CB if is_ours(ctx) => ctx.add_cb_flags(BPF_SOCK_OPS_RTT_CB_FLAG),
        BPF_SOCK_OPS_RTT_CB if is_ours(ctx) => {
            let answer = if ctx.arg1() != 0 {
                WITH_SAMPLE
            } else {
                WITHOUT_SAMPLE
            };
            cells::set_stat(TRIAL_ANSWER_CELL, answer);
        }
        _ => {}
    }
    // Any other value would tell the kernel that the callback is answered.
    1
}

#[inline(always)]
fn is_ours(ctx: Context) -> bool {
    ctx.cookie() == cells::stat_cell(TRIAL_COOKIE_CELL)
}
