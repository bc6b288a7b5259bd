//! `-o json`: one object per line, schema joinprobe/v1.

use std::io::{self, Write};

use super::{Render, Report};

/// The verdict as one JSON line; [`JsonLines`](super::JsonLines) writes a whole run.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Render for Json {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, report)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}
