//! What people see: a table that is redrawn in place, on a real terminal (a pty).

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use joinprobe_lab::lab::{Running, binary};
use joinprobe_lab::{Lab, take_turn};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A terminal, and everything that was written to it.
struct Terminal {
    master: File,
    slave: OwnedFd,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn open(columns: u16, rows: u16) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(path, flags, Mode::empty())?;
        let master = File::from(master);
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, kept) = (master.try_clone()?, Arc::clone(&written));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(chunk.iter().take(length));
            }
        });
        let terminal = Self {
            master,
            slave,
            written,
        };
        terminal.resize(columns, rows)?;
        Ok(terminal)
    }

    fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.master, size)?)
    }

    fn text(&self) -> String {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&written).into_owned()
    }
}

/// What stands on a screen of this width, however many lines it has: newlines, wrapping, cursor up, erase below.
fn screen(text: &str, columns: usize) -> Result<Vec<String>> {
    let mut rows = vec![String::new()];
    let mut at = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {}
            '\n' => {
                at += 1;
                if at == rows.len() {
                    rows.push(String::new());
                }
            }
            '\x1b' => {
                ensure!(characters.next() == Some('['), "unknown escape in {text:?}");
                let mut number = String::new();
                let last = loop {
                    match characters.next().context("an escape is cut off")? {
                        digit if digit.is_ascii_digit() || digit == ';' => number.push(digit),
                        last => break last,
                    }
                };
                match last {
                    'A' => at = at.checked_sub(number.parse()?).context("above the top")?,
                    'J' => {
                        rows.truncate(at);
                        rows.push(String::new());
                    }
                    'm' => {}
                    other => anyhow::bail!("escape {other} in {text:?}"),
                }
            }
            other => {
                if rows[at].chars().count() == columns {
                    at += 1;
                    if at == rows.len() {
                        rows.push(String::new());
                    }
                }
                rows[at].push(other);
            }
        }
    }
    Ok(rows)
}

/// A watch that draws on the terminal, and says what it has to say there too.
fn start(lab: &Lab, terminal: &Terminal, args: &[&str]) -> Result<Running> {
    let mut command = Command::new(binary()?);
    command
        .args(args)
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::from(terminal.slave.try_clone()?))
        .stderr(Stdio::from(terminal.slave.try_clone()?));
    Running::spawn(&lab.joiner.namespace, &mut command)
}

/// Lines with which a table begins: time, length of the interval, verdict.
fn heads(rows: &[String]) -> usize {
    rows.iter()
        .filter(|row| row.starts_with("20") && row.contains("Z  "))
        .count()
}

/// How many tables have begun so far.
fn tables(text: &str) -> usize {
    text.matches("Z  ").count()
}

/// Keeps connecting until so many more tables were drawn.
fn draw(lab: &Lab, running: &mut Running, terminal: &Terminal, more: usize) -> Result<()> {
    let server = lab.apiserver_node.at(joinprobe_lab::lab::APISERVER_PORT);
    let target = tables(&terminal.text()) + more;
    lab.joiner.namespace.enter(|| -> Result<()> {
        running.wait_until(|_| {
            let _ = std::net::TcpStream::connect(server);
            std::thread::sleep(Duration::from_millis(20));
            tables(&terminal.text()) >= target
        })
    })?
}

#[test]
fn tables_replace_each_other_and_messages_stay() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let terminal = Terminal::open(80, 40)?;
    let folder = lab.folder().join("textfiles");
    std::fs::create_dir(&folder)?;
    let textfile = format!("--textfile={}", folder.join("x.prom").display());
    let args = ["watch", "--interval=400ms", "--color=never", &textfile];
    let mut running = start(&lab, &terminal, &args)?;
    draw(&lab, &mut running, &terminal, 4)?;
    let rows = screen(&terminal.text(), 80)?;
    assert_eq!(heads(&rows), 1, "{rows:#?}");

    std::fs::remove_dir(&folder).or_else(|_| std::fs::remove_dir_all(&folder))?;
    draw(&lab, &mut running, &terminal, 4)?;
    let rows = screen(&terminal.text(), 80)?;
    ensure!(
        rows.iter().any(|row| row.contains("--textfile")),
        "{rows:#?}"
    );
    // The table above the message stays too.
    ensure!(heads(&rows) <= 2, "{rows:#?}");

    let before = terminal.text().len();
    terminal.resize(150, 40)?;
    draw(&lab, &mut running, &terminal, 4)?;
    let text = terminal.text();
    let rows = screen(text.get(before..).context("cut in a character")?, 150)?;
    ensure!(heads(&rows) <= 1, "{rows:#?}");
    running.signal(Signal::TERM)?;
    let finished = running.wait()?;
    ensure!(finished.code == Some(0), "{finished:?}");
    Ok(())
}

#[test]
fn a_command_learns_of_a_changed_window() -> Result<()> {
    let Some(_turn) = take_turn(&["joinprobe", "bash", "stty"])? else {
        return Ok(());
    };
    let lab = Lab::builder().members(0).start()?;
    let terminal = Terminal::open(80, 24)?;
    let script = "test -t 1 && stty size <&1; trap 'stty size <&1; exit 6' WINCH; echo set; \
                  for _ in $(seq 400); do sleep 0.05; done";
    let args = ["run", "--allow-inconclusive", "--", "bash", "-c", script];
    let mut running = start(&lab, &terminal, &args)?;
    running.wait_until(|_| terminal.text().contains("24 80\r\nset\r\n"))?;
    terminal.resize(111, 33)?;
    // As the terminal does where it is the controlling one.
    running.signal(Signal::WINCH)?;
    let finished = running.wait()?;
    ensure!(
        terminal.text().contains("33 111\r\n"),
        "{:?}",
        terminal.text()
    );
    assert_eq!(finished.code, Some(6));
    Ok(())
}
