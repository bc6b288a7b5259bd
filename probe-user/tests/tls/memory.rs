//! Secrets do not stay in memory.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use anyhow::{Context, Result};
use probe_user::tls::ClientIdentity;

use crate::files::Files;

/// Where `needle` is in this process' memory. It comes spelled in hexadecimal, so that looking for it puts no copy there.
fn found_in_memory(needle: &str) -> Result<Vec<String>> {
    let digits = needle.as_bytes();
    let byte = |index: usize| {
        let digit = |at: usize| (digits[at] as char).to_digit(16).unwrap_or(0);
        u8::try_from(digit(2 * index) * 16 + digit(2 * index + 1)).unwrap_or(0)
    };
    let length = digits.len() / 2;
    let mut places = Vec::new();
    let memory = fs::File::open("/proc/self/mem")?;
    for line in fs::read_to_string("/proc/self/maps")?.lines() {
        let (range, rest) = line.split_once(' ').context("maps")?;
        let (from, to) = range.split_once('-').context("maps")?;
        let (from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
        // The buffer this reads into is among what is read, so it is wiped after each use.
        if !rest.starts_with("rw") || rest.ends_with(']') && !rest.contains("heap") {
            continue;
        }
        let mut buffer = vec![0; 1 << 16];
        let mut at = from;
        while at < to {
            let size = buffer.len().min(usize::try_from(to - at)?);
            let read = memory.read_at(&mut buffer[..size], at).unwrap_or(0);
            let hit = buffer[..read].windows(length).any(|window| {
                window
                    .iter()
                    .enumerate()
                    .all(|(index, &seen)| seen == byte(index))
            });
            if hit {
                places.push(format!("{at:x} {rest}"));
            }
            buffer.fill(0);
            if read <= length {
                break;
            }
            // Overlap by a needle, so that none is missed between two reads.
            at += u64::try_from(if read < size || at + read as u64 >= to {
                read
            } else {
                read - length
            })?;
        }
    }
    Ok(places)
}

#[test]
fn no_copy_of_a_key_stays_behind() -> Result<()> {
    let Some(files) = Files::new()? else {
        return Ok(());
    };
    let (certificate, key) = files.pair("rsa", "rsa:2048")?;
    let hexadecimal = |command: &str| -> Result<String> {
        let output = Command::new("sh")
            .args(["-c", &format!("{command} | od -An -v -tx1 | tr -d ' \\n'")])
            .current_dir(files.0.path())
            .output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let text = hexadecimal("sed -n 9p rsa.key")?;
    let der = hexadecimal("openssl pkey -in rsa.key -outform der")?;
    // Well inside the private exponent.
    let (text, der) = (&text[..64], &der[700..764]);
    let identity = ClientIdentity::load(&certificate, &key)?;
    assert_eq!(found_in_memory(text)?, [""; 0]);
    assert_eq!(found_in_memory(der)?, [""; 0]);

    // The search does find what is there.
    let copy = std::hint::black_box(fs::read(&key)?);
    assert_ne!(found_in_memory(text)?, [""; 0]);
    drop((copy, identity));
    Ok(())
}
