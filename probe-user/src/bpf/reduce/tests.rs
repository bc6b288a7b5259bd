use super::*;
use crate::bpf::attach_points::AttachPoints;
use crate::bpf::config::{Grouping, Scope};
use crate::bpf::reconstruction::ReconstructionOffsets;
use crate::bpf::task::TaskOffsets;

fn whole() -> Features {
    Features {
        program: "joinprobe_ops",
        scope: Scope::OwnNamespace,
        netns: 7,
        netns_known: true,
        sk_err_offset: Some(640),
        grouping: Grouping::Targets,
        task: Some(TaskOffsets::default()),
        reconstruction: Ok(ReconstructionOffsets::default()),
        sockets: Err("not asked for".to_owned()),
        attach_points: AttachPoints::default(),
        flow_table: true,
        kernel_log: true,
        limitations: vec!["from before".to_owned()],
    }
}

/// The extras that are there.
fn present(features: &Features) -> Vec<Extra> {
    let all = Extra::ALL.into_iter();
    all.filter(|extra| extra.is_in(features)).collect()
}

fn refused(reason: &str) -> AttachError {
    AttachError::Refused {
        release: "6.1".to_owned(),
        reason: reason.to_owned(),
    }
}

/// A kernel that has something against each of these extras, and names the first that it meets.
fn without(culprits: &[Extra]) -> impl FnMut(&Features) -> Result<&'static str, AttachError> {
    move |features| match culprits.iter().find(|culprit| culprit.is_in(features)) {
        Some(culprit) => Err(refused(&format!("no {culprit:?}"))),
        None => Ok(features.program),
    }
}

/// Every set of extras, in the order of their places.
fn every_set() -> Vec<Vec<Extra>> {
    (0..16_u8)
        .map(|set| {
            let all = Extra::ALL.into_iter();
            all.filter(|extra| set & extra.bit() != 0).collect()
        })
        .collect()
}

#[test]
fn exactly_what_the_kernel_refuses_is_lost_whatever_it_is() {
    for culprits in every_set() {
        let mut features = whole();
        let program = until_accepted(&mut features, without(&culprits)).unwrap();
        assert_eq!(program, "joinprobe_ops", "{culprits:?}");
        let mut kept = Extra::ALL.to_vec();
        kept.retain(|extra| !culprits.contains(extra));
        assert_eq!(present(&features), kept, "{culprits:?}");
        // What nothing is said of here is said where the source of samples is chosen.
        let said = culprits.iter().filter(|c| **c != Extra::Reconstruction);
        assert_eq!(
            features.limitations.len(),
            1 + said.clone().count(),
            "{culprits:?}: {:?}",
            features.limitations
        );
        for culprit in said {
            let reason = format!("(no {culprit:?})");
            let lines = features.limitations.iter();
            assert_eq!(
                lines.filter(|line| line.contains(&reason)).count(),
                1,
                "{culprits:?}: {:?}",
                features.limitations
            );
        }
    }
}

#[test]
fn what_is_not_there_is_not_given_up() {
    for absent in every_set() {
        let mut features = whole().without(
            absent.iter().fold(0, |set, extra| set | extra.bit()),
            &Refusals::default(),
        );
        let before = present(&features);
        let mut attempts = 0;
        let error = until_accepted(&mut features, |_| -> Result<(), _> {
            attempts += 1;
            Err(refused("nothing will do"))
        });
        assert!(matches!(error, Err(AttachError::Refused { .. })));
        // Every set of what is there once, and the plainer program.
        assert_eq!(attempts, (1 << before.len()) + 1, "{absent:?}");
    }
}

#[test]
fn a_reason_that_two_share_is_said_once() {
    let mut features = whole();
    until_accepted(&mut features, |features| {
        if features.task.is_some() || features.sk_err_offset.is_some() {
            return Err(refused("unknown func bpf_probe_read_kernel#113"));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(features.limitations.len(), 2, "{:?}", features.limitations);
    let line = &features.limitations[1];
    assert!(
        line.contains("without their cause, and events") && line.contains("bpf_probe_read_kernel"),
        "{line}"
    );
    assert_eq!(
        present(&features),
        [Extra::KernelLog, Extra::Reconstruction]
    );
}

#[test]
fn the_plainer_program_comes_last() {
    for (netns_known, plain) in [(true, "joinprobe_plain"), (false, "joinprobe_least")] {
        let mut features = Features {
            netns_known,
            ..whole()
        };
        let program = until_accepted(&mut features, |features| match features.program {
            "joinprobe_ops" => Err(refused("dead code")),
            program => Ok(program),
        });
        assert_eq!(program.unwrap(), plain);
        assert_eq!(present(&features), []);
        assert_eq!(features.program, plain);
    }
}

#[test]
fn what_is_no_refusal_ends_it_at_once() {
    let mut attempts = 0;
    let error = until_accepted(&mut whole(), |_| -> Result<(), _> {
        attempts += 1;
        Err(AttachError::UserNamespace)
    });
    assert!(matches!(error, Err(AttachError::UserNamespace)));
    assert_eq!(attempts, 1);
}
