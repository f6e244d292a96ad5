//! Shows the progress of a run on a terminal.

use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::measure::statistics::Second;

/// The progress bar of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    before: (Duration, Second),
}

impl Progress {
    /// Creates a bar for a run of this length, or of this many requests.
    pub(crate) fn new(name: &'static str, whole: Option<Duration>, requests: u64) -> Self {
        let template = "{prefix} {wide_bar} {percent}% {msg}";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let length =
            whole.map_or(requests, |whole| whole.as_secs() * 1_000 + u64::from(whole.subsec_millis()));
        // indicatif draws on standard error, and only if it is a terminal.
        let bar = ProgressBar::new(length.max(1)).with_style(style).with_prefix(name);
        Self { bar, before: (Duration::ZERO, Second::default()) }
    }

    /// Shows the progress.
    pub(crate) fn show(&mut self, elapsed: Duration, by_time: bool, now: Second) {
        if self.bar.is_hidden() {
            return;
        }
        let (then, before) = std::mem::replace(&mut self.before, (elapsed, now));
        let milliseconds = u64::try_from(elapsed.saturating_sub(then).as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = |now: u64, before: u64| now.saturating_sub(before).saturating_mul(1_000) / milliseconds;
        self.bar.set_position(if by_time {
            u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
        } else {
            now.requests + now.errors
        });
        self.bar.set_message(format!(
            "{} req/s {}/s {} errors",
            rate(now.requests, before.requests),
            HumanBytes(rate(now.bytes, before.bytes)),
            now.errors
        ));
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the sum of the connections' counts.
pub(crate) fn sum(all: impl Iterator<Item = Second>) -> Second {
    all.fold(Second::default(), |sum, one| Second {
        requests: sum.requests + one.requests,
        bytes: sum.bytes + one.bytes,
        errors: sum.errors + one.errors,
    })
}
