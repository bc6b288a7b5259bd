//! A spinner on standard error, on a terminal only.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// Shows that something goes on; wiped when dropped.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Starts a spinner with `message`; does nothing when standard error is no terminal.
    #[must_use]
    pub fn start(message: String) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner().with_style(ProgressStyle::default_spinner());
        bar.set_message(message);
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
