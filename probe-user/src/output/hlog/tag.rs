//! What a line of the log is about.

use std::borrow::Cow;
use std::fmt;

/// The tag of a line: `key=value` pairs with semicolons between them. Values have no semicolon, comma, white space or
/// control character, which the log's format would not survive; they are replaced by `_`, but for a process's name, where
/// they are escaped as `\x20`, `\x2c` and `\x3b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogTag<'a> {
    /// The observing node's name.
    pub(crate) node: &'a str,
    /// The target's role.
    pub(crate) role: &'a str,
    /// The target's address.
    pub(crate) target: &'a str,
    /// `client` or `server`.
    pub(crate) side: &'a str,
    /// The process whose connections these are, as every output writes its name.
    pub(crate) process: Option<Cow<'a, str>>,
    /// The measure's name.
    pub(crate) measure: &'a str,
    /// The phase of the watched command.
    pub(crate) phase: Option<&'a str>,
}

impl<'a> LogTag<'a> {
    /// Reads a tag that [`Display`](fmt::Display) wrote; keys it does not know are left out. `None` when a key other
    /// than `process` and `phase` is missing.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let value = |key: &str| {
            text.split(';')
                .filter_map(|pair| pair.split_once('='))
                .find(|(found, _)| *found == key)
                .map(|(_, value)| value)
        };
        Some(Self {
            node: value("node")?,
            role: value("role")?,
            target: value("target")?,
            side: value("side")?,
            process: value("process").map(unescaped),
            measure: value("measure")?,
            phase: value("phase"),
        })
    }
}

impl fmt::Display for LogTag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = self.process.as_deref().map(escaped);
        let pairs = [
            ("node", Some(self.node)),
            ("role", Some(self.role)),
            ("target", Some(self.target)),
            ("side", Some(self.side)),
            ("process", process.as_deref()),
            ("measure", Some(self.measure)),
            ("phase", self.phase),
        ];
        let mut separator = "";
        for (key, value) in pairs {
            let Some(value) = value else { continue };
            write!(f, "{separator}{key}=")?;
            for c in value.chars() {
                let kept = !(c.is_whitespace() || c.is_control() || c == ';' || c == ',');
                write!(f, "{}", if kept { c } else { '_' })?;
            }
            separator = ";";
        }
        Ok(())
    }
}

/// What a name may hold and the log's format may not.
const ESCAPES: [(char, &str); 3] = [(' ', r"\x20"), (',', r"\x2c"), (';', r"\x3b")];

fn escaped(name: &str) -> String {
    ESCAPES.iter().fold(name.to_owned(), |name, (c, escape)| {
        name.replace(*c, escape)
    })
}

fn unescaped(mut text: &str) -> Cow<'_, str> {
    let mut name = String::new();
    while let Some(at) = text.find('\\') {
        let (before, rest) = text.split_at(at);
        name.push_str(before);
        let known = ESCAPES.iter().find(|(_, escape)| rest.starts_with(escape));
        let taken = if let Some((c, escape)) = known {
            name.push(*c);
            escape.len()
        } else {
            // A backslash is written twice; any other escape is part of the name as it is written.
            let taken = if rest.starts_with(r"\\") { 2 } else { 1 };
            name.push_str(&rest[..taken]);
            taken
        };
        text = &rest[taken..];
    }
    if name.is_empty() {
        return Cow::Borrowed(text);
    }
    name.push_str(text);
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let tag = LogTag {
            node: "cp-4",
            role: "etcd-peer",
            target: "[fe80::1%eth0]:2380",
            side: "server",
            process: None,
            measure: "segment",
            phase: Some("control-plane-join"),
        };
        assert_eq!(LogTag::parse(&tag.to_string()), Some(tag.clone()));
        for name in [
            "etcd",
            "tmux: server",
            "a;b,c ",
            r"\\x20 x\\",
            r"\xff\u{1b}\n",
        ] {
            let named = LogTag {
                process: Some(name.into()),
                ..tag.clone()
            };
            let text = named.to_string();
            assert!(
                !text.contains([' ', ',']) && text.matches(';').count() == 6,
                "{text}"
            );
            assert_eq!(LogTag::parse(&text), Some(named));
        }
        let text = LogTag {
            node: "a b;c,\n",
            ..tag
        }
        .to_string();
        assert!(text.starts_with("node=a_b_c__;role="), "{text}");
        assert_eq!(LogTag::parse("A"), None);
    }
}
