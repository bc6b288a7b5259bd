//! HdrHistogram's compressed V2 encoding, as found in files of unknown origin.

use std::io::Read as _;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;

use crate::histogram::{self, Distribution};

/// First four bytes of the compressed and of the plain encoding.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const PLAIN: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
/// Compressed encoding: the cookie and the length of what follows.
const PREFIX: usize = 8;
/// Plain encoding: cookie, payload length, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;
/// More than any histogram of ours decompresses to (2560 counts of at most nine bytes).
const MOST_BYTES: u64 = 64 * 1024;
/// Values beyond this, and more than so many digits, are none of ours and would take a lot of memory.
const HIGHEST: u64 = 1 << 40;
const MOST_DIGITS: u32 = 3;

/// Decodes `text`; the result has the kernel side's precision.
///
/// The header is checked before the library sees it: it allocates what a header asks for.
///
/// # Errors
/// One clause saying what is wrong.
pub(super) fn decode(text: &str) -> Result<Distribution, String> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .map_err(|_| "the histogram is not base64".to_owned())?;
    if bytes.len() < PREFIX || bytes[..4] != COMPRESSED {
        return Err("the histogram is not of the compressed V2 encoding".to_owned());
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(&bytes[PREFIX..])
        .take(MOST_BYTES)
        .read_to_end(&mut plain)
        .map_err(|_| "the histogram is damaged".to_owned())?;
    if plain.len() < HEADER || plain[..4] != PLAIN {
        return Err("the histogram is damaged".to_owned());
    }
    let word = |at: usize| -> u32 {
        plain[at..at + 4]
            .iter()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let payload = usize::try_from(word(4)).unwrap_or(usize::MAX);
    if payload > plain.len() - HEADER {
        return Err("the histogram is cut short".to_owned());
    }
    if word(12) > MOST_DIGITS || long(24) > HIGHEST {
        return Err("the histogram is not one of joinprobe's".to_owned());
    }
    let read: Distribution = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| format!("the histogram is damaged: {error}"))?;
    let mut samples = histogram::empty();
    for step in read.iter_recorded() {
        histogram::record(
            &mut samples,
            step.value_iterated_to(),
            step.count_at_value(),
        );
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(header: &[u8], payload: &[u8]) -> String {
        use flate2::{Compression, write::ZlibEncoder};
        use std::io::Write as _;
        let mut bytes = COMPRESSED.to_vec();
        bytes.extend([0, 0, 0, 0]);
        let mut encoder = ZlibEncoder::new(bytes, Compression::fast());
        encoder.write_all(header).unwrap();
        encoder.write_all(payload).unwrap();
        base64::engine::general_purpose::STANDARD.encode(encoder.finish().unwrap())
    }

    fn header(payload: u32, digits: u32, highest: u64) -> Vec<u8> {
        let mut header = PLAIN.to_vec();
        header.extend(payload.to_be_bytes());
        header.extend(0_u32.to_be_bytes());
        header.extend(digits.to_be_bytes());
        header.extend(1_u64.to_be_bytes());
        header.extend(highest.to_be_bytes());
        header.extend(1_f64.to_be_bytes());
        header
    }

    #[test]
    fn a_header_that_asks_for_gigabytes_is_refused() {
        for (text, reason) in [
            (String::new(), "compressed V2"),
            ("*".to_owned(), "base64"),
            ("AAAAAAAAAAAA".to_owned(), "compressed V2"),
            (encode(&[], &[]), "damaged"),
            (encode(&header(u32::MAX, 2, 1000), &[2]), "cut short"),
            (encode(&header(1, 5, 1000), &[2]), "not one of joinprobe's"),
            (
                encode(&header(1, 2, u64::MAX), &[2]),
                "not one of joinprobe's",
            ),
            (encode(&header(1, 2, 0), &[2]), "damaged"),
            (encode(&header(0, 2, 1000), &vec![0; 1 << 20]), ""),
        ] {
            let result = decode(&text);
            if reason.is_empty() {
                assert!(result.unwrap().is_empty());
            } else {
                let error = result.unwrap_err();
                assert!(error.contains(reason), "{text}: {error}");
            }
        }
    }
}
