//! `-o json`: one object per line, schema joinprobe/v1.

use std::io::{self, Write};

use super::{Exporter, Report};

/// JSON lines.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl Exporter for Json {
    fn write(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, report)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}
