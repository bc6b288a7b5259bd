//! How a run decides, apart from the limits: confidence, looks, and what is tolerated.

/// How a target is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Confidence of a whole run's decisions, 0.5 to 0.999.
    pub confidence: f64,
    /// How often the samples are looked at before the run gives up: connections per target. At least 1.
    pub looks: u32,
    /// Targets judged beside each other, this one included. At least 1.
    pub targets: u32,
}

impl Default for Policy {
    /// 95 %, three connections, four targets (three etcd members and an API server).
    fn default() -> Self {
        Self {
            confidence: 0.95,
            looks: 3,
            targets: 4,
        }
    }
}

impl Policy {
    /// Error probability of a single decision that nothing depends on but itself (p99, rates).
    #[must_use]
    pub fn alpha(&self) -> f64 {
        (1.0 - self.confidence).clamp(0.001, 0.5)
    }

    /// Error probability of one look finding a median within its limit. The looks share the run's error; the targets
    /// do not, because a run passes only when every target does.
    #[must_use]
    pub fn alpha_within(&self) -> f64 {
        self.alpha() / f64::from(self.looks.max(1))
    }

    /// Error probability of one look finding a median beyond its limit. Looks and targets share the run's error,
    /// because one target that is wrongly found beyond fails the run; and of that only a fifth is spent (at 95 %
    /// confidence a fail is held to 99 %), because a false alarm replaces a good machine, again and again.
    #[must_use]
    pub fn alpha_beyond(&self) -> f64 {
        self.alpha_within() / f64::from(self.targets.max(1)) / 5.0
    }
}

/// What kind of node is joining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Join {
    /// A control-plane node, whose own etcd member joins the cluster's.
    #[default]
    ControlPlane,
    /// A worker, which talks to API servers only.
    Worker,
}

/// How the targets' verdicts become the run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// What is joining.
    pub join: Join,
    /// etcd members that may be unreachable without failing the run.
    pub allow_unreachable: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_shared_by_looks_and_targets() {
        let policy = Policy::default();
        assert!((policy.alpha_within() - 0.05 / 3.0).abs() < 1e-12);
        assert!((policy.alpha_beyond() - 0.05 / 60.0).abs() < 1e-12);
    }
}
