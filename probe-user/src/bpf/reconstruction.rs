//! Where the kernel keeps what reconstructing RTT samples needs.

use aya::EbpfLoader;

use super::btf::KernelTypes;

/// Offsets of fields, in bytes; all 0 where they may not or cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReconstructionOffsets {
    /// `tcp_sock.srtt_us` (include/linux/tcp.h).
    srtt: u32,
    /// `sock_common.skc_cookie` (include/net/sock.h), with which every `struct sock` begins.
    cookie: u32,
}

impl ReconstructionOffsets {
    /// Those of the running kernel, or why they are of no use.
    pub(super) fn find(types: &KernelTypes) -> Result<Self, String> {
        let of = |structure: &str, member: &str| {
            types.offset(structure, member).ok_or_else(|| {
                format!("the kernel's type information (BTF) has no {structure}.{member}")
            })
        };
        Ok(Self {
            srtt: of("tcp_sock", "srtt_us")?,
            cookie: of("sock_common", "skc_cookie")?,
        })
    }

    /// Whether there are any.
    pub(super) fn are_known(&self) -> bool {
        self.srtt != 0
    }

    /// Tells them to the kernel side.
    pub(super) fn set<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader
            .override_global("SRTT_OFFSET", &self.srtt, true)
            .override_global("COOKIE_OFFSET", &self.cookie, true);
    }
}
