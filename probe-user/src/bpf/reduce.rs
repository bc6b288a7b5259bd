//! What is given up where the kernel refuses the main program: as little as it takes.

use super::capability::PERFMON;
use super::error::AttachError;
use super::features::{self, Features};

/// What the main program can do without, the least missed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    KernelLog,
    ProcessNames,
    FailureCauses,
    Reconstruction,
}

impl Extra {
    const ALL: [Self; 4] = [
        Self::KernelLog,
        Self::ProcessNames,
        Self::FailureCauses,
        Self::Reconstruction,
    ];

    /// Its place in a set. Sets are tried in the order of their numbers, so that what is missed more stays longer.
    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn is_in(self, features: &Features) -> bool {
        match self {
            Self::KernelLog => features.kernel_log,
            Self::ProcessNames => features.task.is_some(),
            Self::FailureCauses => features.sk_err_offset.is_some(),
            Self::Reconstruction => features.reconstruction.is_ok(),
        }
    }
}

/// Lets `attempt` load the main program: with all features, and where the kernel refuses that, without every set of them in
/// turn until it is accepted. No smaller set would then have done. What is missing in the end is gone from `features` and
/// said in its limitations; if even the bare program is refused, a plainer form of it comes last.
///
/// # Errors
/// What `attempt` fails with otherwise, and the first refusal if all is refused.
pub(super) fn until_accepted<T>(
    features: &mut Features,
    mut attempt: impl FnMut(&Features) -> Result<T, AttachError>,
) -> Result<T, AttachError> {
    let whole = features.clone();
    let present = Extra::ALL
        .into_iter()
        .filter(|extra| extra.is_in(&whole))
        .fold(0, |set, extra| set | extra.bit());
    let mut refusals = Refusals::default();
    let mut given_up = 0;
    loop {
        let candidate = whole.without(given_up, &refusals);
        match attempt(&candidate) {
            Err(refusal @ AttachError::Refused { .. }) => refusals.note(given_up, refusal),
            other => {
                *features = candidate;
                return other;
            }
        }
        if given_up == present {
            break;
        }
        // The next larger number within the set of those present.
        given_up = given_up.wrapping_sub(present) & present;
    }
    let plain = features::plain_program(whole.netns_known);
    if whole.program != plain {
        let candidate = Features {
            program: plain,
            ..whole.without(present, &refusals)
        };
        let accepted = attempt(&candidate);
        if !matches!(accepted, Err(AttachError::Refused { .. })) {
            *features = candidate;
            return accepted;
        }
    }
    Err(refusals.first())
}

/// Why the kernel refused the program without each set of extras, as far as that was tried.
#[derive(Debug, Default)]
struct Refusals(Vec<(u8, AttachError)>);

impl Refusals {
    fn note(&mut self, given_up: u8, refusal: AttachError) {
        log::debug!("without the extras {given_up:#06b}: {refusal}");
        self.0.push((given_up, refusal));
    }

    /// What the kernel had against `extra`: its words when that alone of `given_up` was still there. It was tried before.
    fn of(&self, extra: Extra, given_up: u8) -> String {
        let with_it = given_up & !extra.bit();
        let refusal = self.0.iter().find(|(set, _)| *set == with_it);
        match refusal {
            Some((_, AttachError::Refused { reason, .. })) => {
                format!("the kernel refuses what that takes ({reason})")
            }
            _ => "the kernel refuses what that takes".to_owned(),
        }
    }

    fn first(self) -> AttachError {
        let first = self.0.into_iter().next();
        first.map_or_else(
            || AttachError::Object("its program was never loaded".to_owned()),
            |(_, refusal)| refusal,
        )
    }
}

impl Features {
    /// The same without a set of extras, all of which are there; and with a sentence for each.
    fn without(&self, given_up: u8, refusals: &Refusals) -> Self {
        let mut features = self.clone();
        let reason = |extra: Extra| {
            (given_up & extra.bit() != 0 && extra.is_in(self)).then(|| refusals.of(extra, given_up))
        };
        if let Some(reason) = reason(Extra::KernelLog) {
            features.kernel_log = false;
            features.limitations.push(format!(
                "the kernel side's debug lines are off, most likely for want of {}: {reason}",
                PERFMON.name
            ));
        }
        let names = reason(Extra::ProcessNames);
        let causes = reason(Extra::FailureCauses);
        if names.is_some() {
            features.task = None;
        }
        if causes.is_some() {
            features.sk_err_offset = None;
        }
        let lost = features::lost(causes.as_ref(), names.as_ref(), self.grouping);
        features.limitations.extend(lost);
        // What that costs, if anything, is said where the source of samples is chosen.
        if let Some(reason) = reason(Extra::Reconstruction) {
            features.reconstruction = Err(reason);
        }
        features
    }
}

#[cfg(test)]
mod tests;
