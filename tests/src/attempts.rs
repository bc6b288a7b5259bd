//! Second chances for what a shared machine can spoil: whether something happened on time.

use std::fmt;

use anyhow::{Context, Error, Result};

/// An expectation about time that did not hold, so that the attempt proves nothing: either the machine was busy with
/// something else, or what is tested is slow or wrong. Only the former passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldUp(String);

impl fmt::Display for HeldUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HeldUp {}

/// Holds an expectation about time. What does not depend on time belongs into `assert!`: it gets no second chance.
///
/// # Errors
/// [`HeldUp`], when it does not hold.
pub fn on_time(holds: bool, reason: impl FnOnce() -> String) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(HeldUp(reason()).into())
}

/// Goes through a scenario until nothing in it was [`HeldUp`], at most `most` times, and prints why an attempt is
/// repeated. Every other error, and every panic, ends it at once: a wrong count is wrong the first time.
///
/// # Errors
/// Those of the scenario; when it was held up `most` times, the last one.
#[allow(
    clippy::print_stdout,
    reason = "the reason for a repeated attempt belongs in the test's output"
)]
pub fn attempts<T>(most: u32, mut scenario: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        let error: Error = match scenario() {
            Err(error) if error.is::<HeldUp>() => error,
            ended => return ended,
        };
        if attempt >= most {
            return Err(error).with_context(|| format!("held up {most} times"));
        }
        println!("attempt {attempt} of {most} proves nothing: {error:#}");
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a scenario is gone through that ends so.
    fn times(most: u32, ends: impl Fn(u32) -> Result<()>) -> (u32, Result<()>) {
        let mut times = 0;
        let ended = attempts(most, || {
            times += 1;
            ends(times)
        });
        (times, ended)
    }

    #[test]
    fn only_what_was_held_up_is_done_again() {
        let held_up = |_| on_time(false, || "late".to_owned()).context("of a part");
        let (count, ended) = times(3, held_up);
        assert_eq!((count, ended.unwrap_err().is::<HeldUp>()), (3, true));
        let (count, ended) = times(3, |time| on_time(time == 2, String::new));
        assert!(count == 2 && ended.is_ok());
        let (count, ended) = times(3, |_| Err(Error::msg("wrong")));
        assert!(count == 1 && ended.is_err());
    }
}
