//! The `joinprobe` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    probe_user::run::run()
}
