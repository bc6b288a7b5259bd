//! Certificates and keys that do not fit.

use anyhow::Result;
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::APISERVER_PORT;
use joinprobe_lab::pki::Validity;
use joinprobe_lab::take_turn;

use crate::{check_measured, check_refused, check_sentence, lab, run, with};

#[test]
fn another_ca() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let (other, _) = lab.pki.foreign()?;
    let run = run(&lab, with(&lab, "--etcd-cacert", &other.pair.cert))?;
    assert_eq!(run.code, Some(3), "{run:?}");
    let report = run.report()?;
    for node in &lab.member_nodes {
        let target = report.target(node.at(CLIENT_PORT))?;
        assert_eq!(target.verdict(), "fail");
        check_sentence(
            target.findings("fail")[0]["text"]
                .as_str()
                .unwrap_or_default(),
            &["CA"],
        );
        assert!(
            target.number("/path/count")? >= 5,
            "the network was measured all the same: {target:?}"
        );
    }
    check_measured(&report, lab.apiserver_node.at(APISERVER_PORT))
}

#[test]
fn an_expired_client_certificate_is_a_warning() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let expired = lab.pki.etcd_client("expired", Validity::Expired)?;
    let mut args = with(&lab, "--etcd-cert", &expired.cert);
    if let Some(place) = args.iter().position(|word| word == "--etcd-key") {
        args[place + 1] = expired.key.into();
    }
    let run = run(&lab, args)?;
    let report = run.report()?;
    assert_eq!((run.code, report.verdict()), (Some(0), "warn"), "{run:?}");
    let warnings = report.findings("warn");
    let about_it = |finding: &&&serde_json::Value| {
        finding["text"]
            .as_str()
            .is_some_and(|text| text.contains("expired"))
    };
    assert!(
        warnings.iter().any(|finding| about_it(&finding)),
        "{warnings:?}"
    );
    for node in &lab.member_nodes {
        check_measured(&report, node.at(CLIENT_PORT))?;
    }
    Ok(())
}

#[test]
fn a_key_that_does_not_match() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let mismatched = lab.pki.mismatched_client();
    check_refused(
        &run(&lab, with(&lab, "--etcd-key", &mismatched.key))?,
        2,
        &["key", "certificate"],
    );
    let missing = lab.folder().join("missing.key");
    check_refused(
        &run(&lab, with(&lab, "--etcd-key", &missing))?,
        2,
        &["missing.key"],
    );
    Ok(())
}
