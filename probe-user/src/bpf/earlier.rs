//! Connections that were there before the observer: adopted where the kernel can, else sampled where it lists them.

use std::collections::HashMap;

use aya::Ebpf;

use super::config::ObserverConfig;
use super::existing::{self, Adoption, Release};
use super::features::Features;
use super::kernel::Kernel;
use super::mapped::MappedCells;
use super::observer::Endpoint;
use super::sampling::Sampler;
use crate::measure::Sampled;

/// How they are observed.
pub(super) enum Earlier {
    /// As any other connection, from now on.
    Adopted(Release),
    /// Once per report interval.
    Sampled(Box<Sampler>),
    /// Not at all.
    Ignored,
}

/// Notes what is there, where it may have to be sampled. To be called before the hook is taken, so that no connection is
/// both observed and sampled.
///
/// Not on kernels that adopt: asking may make the kernel load a module (`tcp_diag`, as `ss` does).
pub(super) fn note(
    config: &ObserverConfig,
    features: &Features,
    kernel: &Kernel,
) -> Option<Result<Sampler, String>> {
    let adopts = features.sockets.is_ok() && kernel.version >= existing::SINCE;
    (!config.own_only && !adopts).then(|| {
        Sampler::start(config, features)
            .map_err(|error| format!("the kernel does not list its sockets ({error})"))
    })
}

/// Why the kernel does not adopt connections although it seemed that it would; some may be observed by now.
#[derive(Debug)]
pub(super) struct NotAdopted(pub(super) String);

impl Earlier {
    /// Adopts what is there, or keeps `noted` to sample it; what cannot be goes into `features.limitations`.
    ///
    /// # Errors
    /// Nothing was noted, or too late: what is there has to be noted anew.
    pub(super) fn take(
        ebpf: &mut Ebpf,
        noted: Option<Result<Sampler, String>>,
        stats: &MappedCells,
        features: &mut Features,
        kernel: &Kernel,
    ) -> Result<Self, NotAdopted> {
        let reason = match existing::adopt(ebpf, stats, features, kernel) {
            Ok(Adoption {
                release,
                limitations,
            }) => {
                features.limitations.extend(limitations);
                return Ok(Self::Adopted(release));
            }
            Err(reason) => reason,
        };
        let noted = noted.filter(|_| existing::adopted(stats) == 0);
        let (kept, limitation) = match noted {
            Some(Ok(sampler)) => {
                let limitation = format!(
                    "connections that were there before ({}) are sampled once per interval through sock_diag, which tells \
                     smoothed RTTs, and judged by no limit, instead of observed: {reason}",
                    sampled(&sampler)
                );
                (Self::Sampled(Box::new(sampler)), limitation)
            }
            Some(Err(unlisted)) => {
                let limitation = format!(
                    "connections that were there before are not observed: {reason}; nor can they be sampled: {unlisted}"
                );
                (Self::Ignored, limitation)
            }
            None => return Err(NotAdopted(reason)),
        };
        features.limitations.push(limitation);
        Ok(kept)
    }

    /// Looks at those that are sampled.
    pub(super) fn look(&mut self) {
        if let Self::Sampled(sampler) = self {
            sampler.look();
        }
    }

    /// What was sampled so far; `None` where nothing is.
    pub(super) fn sampled(&self) -> Option<&HashMap<Endpoint, Sampled>> {
        match self {
            Self::Sampled(sampler) => Some(sampler.counts()),
            Self::Adopted(_) | Self::Ignored => None,
        }
    }
}

fn sampled(sampler: &Sampler) -> String {
    match sampler.connections() {
        (known, 0) => known.to_string(),
        (known, left_out) => format!("{known}, without {left_out} that are too many"),
    }
}
