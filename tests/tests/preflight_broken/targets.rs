//! Targets that do not answer, or not as they should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::Result;
use joinprobe_lab::apiserver::Answer;
use joinprobe_lab::etcd::CLIENT_PORT;
use joinprobe_lab::lab::{APISERVER_PORT, Node};
use joinprobe_lab::take_turn;

use crate::{and, check_measured, check_one_fails, check_sentence, lab, run};

/// Listens in a node and does this with every connection.
fn serve(node: &Node, port: u16, work: fn(std::net::TcpStream)) -> Result<SocketAddr> {
    let address = node.at(port);
    let listener = node.namespace.enter(|| TcpListener::bind(address))??;
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(work));
    Ok(address)
}

#[test]
fn a_dead_host() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    // Not one of the members: without it the others may elect a new leader, and say so to the one read.
    let node = &lab.spare_nodes[0];
    lab.link.set_dead(node.v4.into(), true);
    let dead = node.at(CLIENT_PORT);
    let also_dead = ["--etcd".to_owned(), dead.to_string()];
    let failing = run(&lab, and(&lab, &also_dead))?;
    check_one_fails(&lab, &failing, dead, &[&dead.to_string()])?;
    let tolerate = ["--allow-unreachable".to_owned(), "1".to_owned()];
    let tolerated = run(&lab, and(&lab, &[also_dead, tolerate].concat()))?;
    assert_eq!(tolerated.code, Some(0), "{tolerated:?}");
    Ok(())
}

#[test]
fn a_closed_port() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let closed = lab.spare_nodes[0].at(CLIENT_PORT);
    let run = run(&lab, and(&lab, &["--etcd".into(), closed.to_string()]))?;
    check_one_fails(&lab, &run, closed, &["refuses", "10.1.0.101:2379"])?;
    assert_eq!(
        run.report()?
            .target(closed)?
            .number("/connections/refused")?,
        1
    );
    Ok(())
}

#[test]
fn a_name_that_does_not_resolve() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let run = run(
        &lab,
        and(&lab, &["--etcd".into(), "no-such-host.invalid:2379".into()]),
    )?;
    assert_eq!(run.code, Some(3), "{run:?}");
    let report = run.report()?;
    let failed = report.findings("fail");
    check_sentence(
        failed[0]["text"].as_str().unwrap_or_default(),
        &["no-such-host.invalid"],
    );
    for node in &lab.member_nodes {
        check_measured(&report, node.at(CLIENT_PORT))?;
    }
    Ok(())
}

#[test]
fn tls_on_a_plain_port() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let node = &lab.spare_nodes[0];
    let web = serve(node, 2379, |mut stream| {
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        );
    })?;
    check_one_fails(
        &lab,
        &run(&lab, and(&lab, &["--etcd".into(), web.to_string()]))?,
        web,
        &["TLS"],
    )?;
    let silent = serve(node, 2380, |stream| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(20));
            drop(stream);
        });
    })?;
    check_one_fails(
        &lab,
        &run(&lab, and(&lab, &["--etcd".into(), silent.to_string()]))?,
        silent,
        &["TLS"],
    )
}

#[test]
fn an_api_server_that_is_not_ready() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "etcd"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let address = lab.apiserver_node.at(APISERVER_PORT);
    for (answer, code) in [
        (Answer::unauthorized(), 0),
        (Answer::forbidden("GET", "/readyz"), 0),
        (Answer::not_ready(), 3),
    ] {
        let status = u64::from(answer.status);
        lab.apiserver.answer("/readyz", answer);
        let run = run(&lab, lab.preflight_args())?;
        let report = run.report()?;
        assert_eq!(
            (
                run.code,
                report.target(address)?.number("/probe/http_status")?
            ),
            (Some(code), status),
            "{run:?}"
        );
    }
    Ok(())
}
