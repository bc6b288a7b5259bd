//! Kernel lockdown, which keeps eBPF from reading kernel memory in its stricter mode.

use std::fs;

const FILE: &str = "/sys/kernel/security/lockdown";
const STRICTER: &str = "confidentiality";

/// The mode: `none`, `integrity` or `confidentiality`; `None` where the kernel cannot be locked down or securityfs is
/// not mounted.
#[must_use]
pub fn mode() -> Option<String> {
    chosen(&fs::read_to_string(FILE).ok()?).map(str::to_owned)
}

/// Whether a mode keeps eBPF from reading kernel memory (`LOCKDOWN_BPF_READ_KERNEL` in security/security.c).
#[must_use]
pub fn forbids_reading(mode: &str) -> bool {
    mode == STRICTER
}

/// Of a text such as `none [integrity] confidentiality` the word in brackets.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_the_word_in_brackets() {
        assert_eq!(chosen("[none] integrity confidentiality\n"), Some("none"));
        assert_eq!(
            chosen("none integrity [confidentiality]\n"),
            Some("confidentiality")
        );
        assert_eq!(chosen("nonsense"), None);
        assert!(forbids_reading("confidentiality") && !forbids_reading("integrity"));
    }
}
