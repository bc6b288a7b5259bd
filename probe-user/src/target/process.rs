//! The name of a process.

use std::fmt::{self, Write as _};

/// A process's name as the kernel keeps it: at most 15 bytes that the process itself chooses, never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessName([u8; 16]);

impl ProcessName {
    /// The name in a field of the kernel's, which ends with its first zero; `None` for an empty one, which is how unknown
    /// ones are told.
    #[must_use]
    pub fn new(field: [u8; 16]) -> Option<Self> {
        let mut name = [0; 16];
        let bytes = field.iter().take_while(|byte| **byte != 0);
        for (kept, byte) in name.iter_mut().zip(bytes) {
            *kept = *byte;
        }
        (name != [0; 16]).then_some(Self(name))
    }

    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// As every output writes it. What cannot be printed is escaped (`\u{1b}`, `\xff` for what is no UTF-8) and so is the
/// backslash: two names that differ are written differently.
impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\'' | '"' => f.write_char(c)?,
                    c => write!(f, "{}", c.escape_debug())?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Option<ProcessName> {
        let mut field = [0; 16];
        field[..bytes.len()].copy_from_slice(bytes);
        ProcessName::new(field)
    }

    #[test]
    fn a_name_ends_with_its_first_zero() {
        assert_eq!(name(b"etcd\0inerd-shim"), name(b"etcd"));
        assert_eq!(
            name(b"kube-controller").unwrap().to_string(),
            "kube-controller"
        );
        assert_eq!(
            ProcessName::new([b'x'; 16]).unwrap().to_string(),
            "x".repeat(16)
        );
        assert_eq!(name(b""), None);
        assert_eq!(name(b"\0etcd"), None);
    }

    #[test]
    fn odd_names_are_printable_and_stay_apart() {
        let odd: [(&[u8], &str); 9] = [
            (b"tmux: server", "tmux: server"),
            (b"d\xc3\xa4mon", "d\u{e4}mon"),
            (b"a\x1b[31m\n", r"a\u{1b}[31m\n"),
            (br"a\n", r"a\\n"),
            (b"\xff\xfe", r"\xff\xfe"),
            (br"\xff\xfe", r"\\xff\\xfe"),
            // A character that was cut in the middle.
            (b"0123456789abcd\xc3", r"0123456789abcd\xc3"),
            // Turns the text after it around.
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
            (b"it's \"it\"", "it's \"it\""),
        ];
        for (bytes, expected) in odd {
            let written = name(bytes).unwrap().to_string();
            assert_eq!(written, expected);
            assert!(written.chars().all(|c| !c.is_control()), "{written:?}");
        }
    }
}
