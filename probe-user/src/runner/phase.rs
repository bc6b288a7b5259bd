//! Phases in a command's output, as kubeadm announces them.

/// A longer line begin holds no announcement.
const LONGEST: usize = 160;

/// Finds announcements in a stream of bytes.
///
/// kubeadm writes `[certs] Generating …`, and the same behind a klog header:
/// `I1201 21:24:24.675872      58 local.go:164] [etcd] Checking …`. The words differ between its versions; the brackets
/// do not.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    line: Vec<u8>,
    /// This line has said what it has to say.
    done: bool,
}

impl Scanner {
    /// Takes in the next bytes and calls `found` with every announcement, as soon as it is complete.
    pub(super) fn feed(&mut self, bytes: &[u8], mut found: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if !self.done {
                let room = LONGEST.saturating_sub(self.line.len());
                self.line.extend(part.iter().take(room));
                if let Some(phase) = phase_of(&self.line) {
                    found(phase);
                    self.done = true;
                }
            }
            if part.ends_with(b"\n") {
                self.line.clear();
                self.done = false;
            }
        }
    }
}

/// The phase that a line announces.
fn phase_of(line: &[u8]) -> Option<&str> {
    let line = match std::str::from_utf8(line) {
        Ok(line) => line,
        // A character may be cut in two at the end.
        Err(error) => std::str::from_utf8(line.get(..error.valid_up_to())?).ok()?,
    };
    let message = after_klog_header(line).unwrap_or(line);
    let (name, rest) = message.strip_prefix('[')?.split_once(']')?;
    let is_name = (2..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (is_name && rest.starts_with(' ')).then_some(name)
}

/// What stands behind `I1201 21:24:24.675872      58 local.go:164] `.
fn after_klog_header(line: &str) -> Option<&str> {
    let (header, message) = line.split_once("] ")?;
    let mut words = header.split_ascii_whitespace();
    let severity = words.next()?;
    let (_time, thread, place) = (words.next()?, words.next()?, words.next()?);
    let is_header = severity.starts_with(['I', 'W', 'E', 'F'])
        && severity.len() == 5
        && severity.bytes().skip(1).all(|byte| byte.is_ascii_digit())
        && thread.bytes().all(|byte| byte.is_ascii_digit())
        && place.contains(':')
        && words.next().is_none();
    is_header.then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(chunks: &[&str]) -> Vec<String> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for chunk in chunks {
            scanner.feed(chunk.as_bytes(), |phase| found.push(phase.to_owned()));
        }
        found
    }

    #[test]
    fn finds_both_forms_and_nothing_else() {
        assert_eq!(
            phases(&[
                "[preflight] Running pre-flight checks\n",
                "I1201 21:24:16.937009      58 preflight.go:90] [etcd] Checking etcd cluster health\n",
                "I1201 21:24:16.937092      58 checks.go:249] validating the existence\n",
                "\t[WARNING Service-Kubelet]: kubelet service is not enabled\n",
                "[certs] apiserver serving cert is signed for DNS names [cp2 kubernetes] and IPs [10.96.0.1]\n",
                "the list [x] has\n[ERROR Port-6443]: Port 6443 is in use\n[]\n[a b] c\n",
            ]),
            ["preflight", "etcd", "certs"]
        );
    }

    #[test]
    fn a_line_in_pieces_is_one_line() {
        assert_eq!(
            phases(&["[che", "ck-etcd", "] Checking", " [x] it\n", "[certs] "]),
            ["check-etcd", "certs"]
        );
        let long = "x".repeat(1000);
        assert_eq!(phases(&[&long, "[certs] no\n", "[certs] yes\n"]), ["certs"]);
    }
}
