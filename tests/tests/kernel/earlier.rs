//! Connections that were there before: adopted or sampled, never both, and told apart from what came later.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Finished, Running, binary};
use joinprobe_lab::report::Report;
use joinprobe_lab::{Impairment, Lab, take_turn};

use super::tell;

const PORT: u16 = 2380;
const WATCH: [&str; 6] = ["watch", "-o", "json", "--interval", "1s", "--duration=5s"];

/// Sends a question at a time until told to stop.
fn converse(mut stream: &TcpStream, stop: &AtomicBool) -> Result<()> {
    stream.set_nodelay(true)?;
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(b"question")?;
        stream.read_exact(&mut [0; 6])?;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    while stream.read_exact(&mut [0; 8]).is_ok() {
        stream.write_all(b"answer")?;
    }
    Ok(())
}

/// Watches a node with two busy connections from before, to which another comes once it is watched.
fn watch(lab: &Lab, program: &Path, words: Vec<OsString>) -> Result<Finished> {
    let server = &lab.spare_nodes[0];
    let address = server.at(PORT);
    let listener = server.namespace.enter(|| TcpListener::bind(address))??;
    let connect = || -> Result<TcpStream> {
        let stream = lab
            .joiner
            .namespace
            .enter(|| TcpStream::connect(address))??;
        Ok(stream)
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut talks = Vec::new();
        let mut begin = |stream: TcpStream| -> Result<()> {
            let accepted = listener.accept()?.0;
            scope.spawn(move || answer(accepted));
            let stopped = &stop;
            talks.push(scope.spawn(move || converse(&stream, stopped)));
            Ok(())
        };
        let watched = (|| {
            begin(connect()?)?;
            begin(connect()?)?;
            let mut running = Running::start(&lab.joiner.namespace, program, words)?;
            running.wait_ready()?;
            begin(connect()?)?;
            running.wait()
        })();
        stop.store(true, Ordering::Relaxed);
        for talk in talks {
            talk.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        watched
    })
}

/// The run's verdict, its last line.
fn verdict(run: &Finished) -> Result<Report> {
    ensure!(run.code == Some(0), "{run:?}");
    let last = run.stdout.lines().last().context("no output")?;
    Ok(Report(serde_json::from_str(last)?))
}

/// They are sampled: nothing of them is in any distribution of samples, and the numbers are those of the link.
fn sampled(run: &Finished, address: SocketAddr) -> Result<()> {
    let verdict = verdict(run)?;
    let row = verdict.target(address)?;
    assert_eq!(row.text("/sampled/source"), "sock_diag", "{run:?}");
    assert_eq!(row.number("/sampled/found")?, 2, "{run:?}");
    assert_eq!(row.number("/sampled/open")?, 2, "{run:?}");
    // One per connection and interval; emulated machines may miss some.
    let looks = row.number("/sampled/smoothed/count")?;
    ensure!((4..=14).contains(&looks), "{run:?}");
    let (smoothed, minimum) = (
        row.number("/sampled/smoothed/p50_us")?,
        row.number("/sampled/minimum/p50_us")?,
    );
    ensure!((9_500..60_000).contains(&smoothed), "{run:?}");
    ensure!((9_500..40_000).contains(&minimum), "{run:?}");
    ensure!(minimum <= smoothed, "{run:?}");
    ensure!(row.number("/sampled/segments_out")? > 20, "{run:?}");
    // Only the one that came later is in these.
    assert_eq!(row.number("/connections/established")?, 1, "{run:?}");
    assert_eq!(row.number("/handshake/count")?, 1, "{run:?}");
    ensure!(row.number("/adopted").is_err(), "{run:?}");
    ensure!(run.stderr.contains("sampled once per interval"), "{run:?}");
    ensure!(!run.stderr.contains("unknown func"), "{run:?}");
    Ok(())
}

fn adopted(run: &Finished, address: SocketAddr) -> Result<()> {
    let verdict = verdict(run)?;
    let row = verdict.target(address)?;
    assert_eq!(row.number("/adopted")?, 2, "{run:?}");
    assert_eq!(row.number("/connections/established")?, 1, "{run:?}");
    assert_eq!(row.number("/handshake/count")?, 1, "{run:?}");
    ensure!(row.number("/segment/count")? > 20, "{run:?}");
    ensure!(row.number("/sampled/found").is_err(), "{run:?}");
    Ok(())
}

#[test]
fn connections_from_before() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv"])? else {
        return Ok(());
    };
    let lab = Lab::builder()
        .members(0)
        .spare_nodes(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()?;
    let address = lab.spare_nodes[0].at(PORT);
    let watch_words = || WATCH.map(OsString::from).to_vec();

    let run = watch(&lab, &binary()?, watch_words())?;
    if run.stderr.contains("6.12 or newer does") {
        sampled(&run, address)?;
        tell("existing", "sampled");
    } else {
        adopted(&run, address)?;
        tell("existing", "adopted");
    }

    // Nobody adopts without the right to read sockets.
    let only = "-all,+bpf,+net_admin";
    let mut words: Vec<OsString> = ["--inh-caps", only, "--bounding-set", only, "--"]
        .map(Into::into)
        .to_vec();
    words.push(binary()?.into_os_string());
    words.extend(watch_words());
    let run = watch(&lab, Path::new("setpriv"), words)?;
    ensure!(run.stderr.contains("CAP_PERFMON is missing"), "{run:?}");
    sampled(&run, address)
}
