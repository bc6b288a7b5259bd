//! Outputs that fail, each with one clear message, while the measuring goes on.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{APISERVER_PORT, Finished, Running, binary};
use joinprobe_lab::{Lab, attempts, on_time, take_turn};
use rustix::process::Signal;

use crate::lines::{established_total, of_kind, verdict};

/// A filesystem with room for next to nothing.
struct TinyDisk(PathBuf);

impl TinyDisk {
    fn mount(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path)?;
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "joinprobe-lab"])
            .arg(&path)
            .status()?;
        ensure!(status.success(), "cannot mount a tmpfs");
        Ok(Self(path))
    }

    /// Leaves no byte free.
    fn fill(&self) -> Result<()> {
        let mut filler = File::create(self.0.join("filler"))?;
        while filler.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    fn make_room(&self) -> Result<()> {
        Ok(fs::remove_file(self.0.join("filler"))?)
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        // Lazily: a process may still have a file open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn connect(lab: &Lab) -> Result<()> {
    let server = lab.apiserver_node.at(APISERVER_PORT);
    lab.joiner
        .namespace
        .enter(|| TcpStream::connect(server))??;
    Ok(())
}

/// How many of its lines on standard error hold all these words.
fn messages(said: &str, words: &[&str]) -> usize {
    said.lines()
        .filter(|line| words.iter().all(|word| line.contains(word)))
        .count()
}

fn start(lab: &Lab, args: &[&str], stdout: impl Into<Stdio>) -> Result<Running> {
    let mut command = Command::new(binary()?);
    command
        .args(["watch", "-ojson", "--interval=500ms"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped());
    let mut running = Running::spawn(&lab.joiner.namespace, &mut command)?;
    running.wait_ready()?;
    Ok(running)
}

fn stop(running: Running) -> Result<Finished> {
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    Ok(finished)
}

#[test]
fn a_full_disk_is_told_once_and_recovered_from() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "mount", "umount"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let disk = TinyDisk::mount(lab.folder().join("disk"))?;
    let (stdout, textfile, hlog) = (
        disk.0.join("stdout"),
        disk.0.join("x.prom"),
        disk.0.join("x.hlog"),
    );
    let out = File::create(&stdout)?;
    disk.fill()?;
    let textfile_flag = format!("--textfile={}", textfile.display());
    let hlog_flag = format!("--hlog={}", hlog.display());
    let mut running = start(
        &lab,
        &[&textfile_flag, &hlog_flag, "--listen=127.0.0.1:0"],
        out,
    )?;
    connect(&lab)?;
    let outputs = ["standard output", "--textfile", "--hlog"];
    running.wait_until(|running| {
        let said = running.said();
        outputs
            .iter()
            .all(|output| messages(&said, &[output, "No space left", "make room"]) > 0)
    })?;
    // Several more reports, none of which repeats itself.
    std::thread::sleep(Duration::from_secs(2));
    for output in outputs {
        let said = running.said();
        assert_eq!(messages(&said, &[output, "No space left"]), 1, "{said}");
    }
    disk.make_room()?;
    connect(&lab)?;
    running.wait_until(|running| {
        let said = running.said();
        outputs
            .iter()
            .all(|output| messages(&said, &[output, "works again"]) > 0)
    })?;
    stop(running)?;
    // What was written from then on is whole, and the measuring missed nothing.
    let text = fs::read_to_string(&stdout)?;
    let whole: String = text
        .split_inclusive('\n')
        .filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
        .collect();
    assert_eq!(established_total(&verdict(&whole)?), 2);
    ensure!(fs::read_to_string(&textfile)?.contains("joinprobe_connections_total"));
    ensure!(fs::read_to_string(&hlog)?.contains("measure=handshake"));
    ensure!(leftovers(&disk.0)?.is_empty(), "{:?}", leftovers(&disk.0)?);
    Ok(())
}

/// Temporary files that nobody will remove.
fn leftovers(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            found.push(path);
        }
    }
    Ok(found)
}

#[test]
fn a_vanished_folder_and_a_taken_port_are_told_once_and_recovered_from() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let folder = lab.folder().join("textfiles");
    fs::create_dir(&folder)?;
    let textfile = folder.join("x.prom");
    let address: SocketAddr = "127.0.0.1:9780".parse()?;
    let taken = lab
        .joiner
        .namespace
        .enter(|| TcpListener::bind(address))??;
    let textfile_flag = format!("--textfile={}", textfile.display());
    let listen_flag = format!("--listen={address}");
    let mut running = start(&lab, &[&textfile_flag, &listen_flag], Stdio::piped())?;
    running.wait_until(|_| textfile.exists())?;
    fs::remove_dir_all(&folder)?;
    let troubles = [
        ["--textfile", "No such file", "create the folder again"],
        ["--listen 127.0.0.1:9780", "in use", "choose another port"],
    ];
    running.wait_until(|running| {
        let said = running.said();
        troubles.iter().all(|trouble| messages(&said, trouble) > 0)
    })?;
    std::thread::sleep(Duration::from_secs(2));
    for trouble in &troubles {
        let said = running.said();
        assert_eq!(messages(&said, trouble), 1, "{said}");
    }
    drop(taken);
    fs::create_dir(&folder)?;
    running.wait_until(|running| messages(&running.said(), &["works again"]) == 2)?;
    ensure!(scrape(&lab, address)?.contains("joinprobe_build_info"));
    connect(&lab)?;
    let finished = stop(running)?;
    assert_eq!(established_total(&verdict(&finished.stdout)?), 1);
    Ok(())
}

#[test]
fn slow_scrapers_hold_up_nobody() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    attempts(3, || scrape_slowly(&lab))
}

fn scrape_slowly(lab: &Lab) -> Result<()> {
    let address: SocketAddr = "127.0.0.1:9781".parse()?;
    let listen_flag = format!("--listen={address}");
    let running = start(lab, &[&listen_flag], Stdio::piped())?;
    let mut slow = Vec::new();
    for number in 0..30 {
        let mut stream = lab
            .joiner
            .namespace
            .enter(|| TcpStream::connect(address))??;
        // Some ask and never read, some stop in the middle of asking, some never begin.
        match number % 3 {
            0 => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?,
            1 => stream.write_all(b"GET /met")?,
            _ => {}
        }
        slow.push(stream);
    }
    let began = Instant::now();
    ensure!(scrape(lab, address)?.contains("joinprobe_build_info"));
    let scraped = began.elapsed();
    connect(lab)?;
    std::thread::sleep(Duration::from_secs(3));
    let finished = stop(running)?;
    let intervals = of_kind(&finished.stdout, "interval")?;
    let longest = intervals
        .iter()
        .filter_map(|interval| interval["interval_us"].as_u64())
        .max()
        .context("no interval")?;
    assert_eq!(established_total(&verdict(&finished.stdout)?), 1);
    on_time(longest < 1_500_000, || {
        format!("an interval of {longest} us instead of 500 ms")
    })?;
    on_time(scraped < Duration::from_secs(2), || {
        format!("scraped after {scraped:?}")
    })
}

fn scrape(lab: &Lab, address: SocketAddr) -> Result<String> {
    let mut stream = lab
        .joiner
        .namespace
        .enter(|| TcpStream::connect(address))??;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn what_cannot_be_is_refused_at_once() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    for (args, words) in [
        (&["watch", "--textfile=/tmp/x.txt"][..], ".prom"),
        (&["watch", "--interval=0s"], "at least 100ms"),
        (&["watch", "--interval=10"], "unit"),
        (&["watch", "--etcd-port=0"], "etcd-port"),
        (&["watch", "--etcd-port=6443"], "a port has one role"),
        (&["watch", "--max-targets=5000"], "max-targets"),
        (&["watch", "--watch=nowhere"], "HOST:PORT=ROLE"),
        (&["watch", "--listen=localhost"], "--listen"),
        (&["watch", "--until-file="], "until-file"),
        (
            &["watch", "--etcd-heartbeat=1s", "--etcd-election=2s"],
            "five times",
        ),
        (&["run"], "CMD"),
        (
            &["run", "--report-file=/no/such/folder/x", "--", "true"],
            "--report-file",
        ),
        (&["run", "--", "/dev/null"], "cannot start `/dev/null`"),
    ] {
        let finished = lab.run_joinprobe(args.iter().copied())?;
        assert_eq!(finished.code, Some(2), "{args:?}: {finished:?}");
        ensure!(finished.stderr.contains(words), "{args:?}: {finished:?}");
        assert_eq!(finished.stdout, "", "{args:?}");
    }
    Ok(())
}
