//! What a line of the log is about.

use std::fmt;

/// The tag of a line: `key=value` pairs with semicolons between them. Values have no semicolon, comma, white space or
/// control character, which the log's format would not survive; they are replaced by `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogTag<'a> {
    /// The observing node's name.
    pub(crate) node: &'a str,
    /// The target's role.
    pub(crate) role: &'a str,
    /// The target's address.
    pub(crate) target: &'a str,
    /// `client` or `server`.
    pub(crate) side: &'a str,
    /// The measure's name.
    pub(crate) measure: &'a str,
    /// The phase of the watched command.
    pub(crate) phase: Option<&'a str>,
}

impl<'a> LogTag<'a> {
    /// Reads a tag that [`Display`](fmt::Display) wrote; keys it does not know are left out. `None` when a key other
    /// than `phase` is missing.
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
            measure: value("measure")?,
            phase: value("phase"),
        })
    }
}

impl fmt::Display for LogTag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [
            ("node", Some(self.node)),
            ("role", Some(self.role)),
            ("target", Some(self.target)),
            ("side", Some(self.side)),
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
            measure: "segment",
            phase: Some("control-plane-join"),
        };
        assert_eq!(LogTag::parse(&tag.to_string()), Some(tag));
        let text = LogTag {
            node: "a b;c,\n",
            ..tag
        }
        .to_string();
        assert!(text.starts_with("node=a_b_c__;role="), "{text}");
        assert_eq!(LogTag::parse("A"), None);
    }
}
