//! Being root, or becoming it through sudo.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Whether this is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether sudo works here without asking, or could ask on the terminal.
pub(crate) fn has_sudo() -> bool {
    let mut sudo = Command::new("sudo");
    if rustix::termios::isatty(rustix::stdio::stdin()) {
        sudo.arg("--validate");
    } else {
        sudo.args(["--non-interactive", "true"]);
    }
    sudo.status().is_ok_and(|status| status.success())
}

/// The words before a command that make it run as root with these variables, which sudo drops otherwise. For root,
/// only the variables.
pub(crate) fn as_root(variables: &[(&str, &OsStr)]) -> Vec<OsString> {
    let mut words: Vec<OsString> = if is_root() {
        Vec::new()
    } else {
        vec!["sudo".into()]
    };
    words.push("env".into());
    for (name, value) in variables {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        words.push(word);
    }
    words
}

/// The values that some of these variables have here.
pub(crate) fn inherited<'a>(names: &[&'a str]) -> Vec<(&'a str, OsString)> {
    names
        .iter()
        .filter_map(|name| Some((*name, env::var_os(name)?)))
        .collect()
}
