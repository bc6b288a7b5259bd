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

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;
    use crate::output::samples;

    fn fits(value: &impl Serialize) -> serde_json::Value {
        let value = serde_json::to_value(value).unwrap();
        joinprobe_lab::schema::check(&value).unwrap();
        value
    }

    #[test]
    fn every_kind_fits_the_published_schema() {
        for report in [samples::verdict(), samples::trouble(), samples::nothing()] {
            let mut line = Vec::new();
            Json.write(&report, &mut line).unwrap();
            fits(&serde_json::from_slice::<serde_json::Value>(&line).unwrap());
        }
        fits(&samples::interval());
        fits(&samples::event());
    }

    #[test]
    fn a_verdict_reads_as_recorded() {
        let mut value = fits(&samples::trouble());
        // Another version of the compressor may write other bytes.
        for target in value["targets"].as_array_mut().unwrap() {
            for measure in target.as_object_mut().unwrap().values_mut() {
                if let Some(hdr) = measure.get_mut("hdr") {
                    *hdr = "HDR".into();
                }
            }
        }
        insta::assert_snapshot!("verdict", serde_json::to_string_pretty(&value).unwrap());
    }
}
