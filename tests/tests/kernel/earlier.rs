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

/// Starts the words that follow where the state of lockdown cannot be read.
const HIDDEN: &str =
    "mount --make-rprivate / && mount -t tmpfs none /sys/kernel/security && exec \"$@\"";

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
    ensure!(
        run.stderr.matches("sampled once per interval").count() == 1,
        "{run:?}"
    );
    ensure!(run.stderr.contains("judged by no limit"), "{run:?}");
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

/// The kernel says yes to all until a list is to be opened, as under a container's system call filter. Without that of
/// programs nothing but their flags stays behind; without that of sockets all is attached once more, to sample them.
fn refused_while_adopting(lab: &Lab, address: SocketAddr) -> Result<()> {
    let folder = joinprobe_lab::scratch_dir()?;
    let log = folder.path().join("calls");
    let traced = |options: &[&str]| -> Result<(Finished, String)> {
        let mut words: Vec<OsString> = ["-f", "-qq", "-e", "trace=bpf"].map(Into::into).to_vec();
        words.extend(options.iter().map(OsString::from));
        words.extend(["-o".into(), log.clone().into(), binary()?.into()]);
        words.extend(WATCH.map(OsString::from));
        let run = watch(lab, Path::new("strace"), words)?;
        Ok((run, std::fs::read_to_string(&log)?))
    };
    let (run, calls) = traced(&[])?;
    adopted(&run, address)?;
    let is_opening = |call: &str| call.contains("BPF_ITER_CREATE");
    // Strace counts the calls of each thread by itself.
    let thread = |call: &str| call.split_whitespace().next().map(str::to_owned);
    let opening = calls.lines().find(|call| is_opening(call));
    let own = thread(opening.with_context(|| format!("no list is opened: {calls}"))?);
    let own = calls.lines().filter(|call| thread(call) == own);
    let openings: Vec<usize> = own
        .enumerate()
        .filter(|(_, call)| is_opening(call))
        .map(|(index, _)| index + 1)
        .collect();
    let refusing = |nth: usize| -> Result<Finished> {
        let inject = format!("inject=bpf:error=EPERM:when={}", openings[nth]);
        let (run, calls) = traced(&["-e", &inject])?;
        let mut refused = calls.lines().filter(|call| call.contains("INJECTED"));
        ensure!(refused.all(is_opening), "another call was refused: {calls}");
        Ok(run)
    };
    let run = refusing(0)?;
    adopted(&run, address)?;
    ensure!(run.stderr.contains("callback flags stay set"), "{run:?}");
    let run = refusing(1)?;
    sampled(&run, address)
}

/// A stricter lockdown whose state the host does not show: that nobody adopts only comes out when the kernel refuses it.
#[test]
fn what_lockdown_takes_of_connections_from_before() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "unshare"])? else {
        return Ok(());
    };
    let state = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if !state.contains("[confidentiality]") {
        return Ok(());
    }
    let lab = lab()?;
    let mut words: Vec<OsString> = ["-m", "sh", "-c", HIDDEN, "sh"].map(Into::into).to_vec();
    words.push(binary()?.into_os_string());
    words.extend(WATCH.map(OsString::from));
    let run = watch(&lab, Path::new("unshare"), words)?;
    sampled(&run, lab.spare_nodes[0].at(PORT))
}

fn lab() -> Result<Lab> {
    Lab::builder()
        .members(0)
        .spare_nodes(1)
        .shape(Impairment::half_of_rtt(Duration::from_millis(10)))
        .start()
}

#[test]
fn connections_from_before() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "setpriv", "strace"])? else {
        return Ok(());
    };
    let lab = lab()?;
    let address = lab.spare_nodes[0].at(PORT);
    let watch_words = || WATCH.map(OsString::from).to_vec();

    let run = watch(&lab, &binary()?, watch_words())?;
    if run.stderr.contains("6.12 or newer does") {
        sampled(&run, address)?;
        ensure!(!run.stderr.contains("unknown func"), "{run:?}");
        tell("existing", "sampled");
    } else {
        adopted(&run, address)?;
        tell("existing", "adopted");
        refused_while_adopting(&lab, address)?;
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
