//! Progress bars on standard error. They are shown only if it is a terminal.

use std::io::{Read, Result};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a command that moves bytes or handles many things.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows how many of a number of bytes were moved.
    pub(crate) fn bytes(total: u64) -> Self {
        Self::new(total, "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }

    /// Shows how many of a number of things were handled.
    pub(crate) fn count(total: u64) -> Self {
        Self::new(total, "{wide_bar} {pos}/{len} {per_sec} {eta}")
    }

    /// Shows a bar and a text that changes.
    pub(crate) fn described() -> Self {
        Self::new(1, "{wide_bar} {msg}")
    }

    /// Returns whether nobody sees it.
    pub(crate) fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// Sets how much of a total is done, and the text.
    pub(crate) fn show(&self, done: u64, total: u64, text: String) {
        self.0.set_length(total.max(1));
        self.0.set_position(done);
        self.0.set_message(text);
    }

    fn new(total: u64, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(total).with_style(style))
    }

    /// Sets the total to at least this, if it was not known.
    pub(crate) fn expect(&self, total: u64) {
        self.0.set_length(self.0.length().unwrap_or(0).max(total));
    }

    /// Adds what was handled.
    pub(crate) fn add(&self, more: u64) {
        self.0.inc(more);
    }

    /// Returns a reader that counts what is read.
    pub(crate) fn counted<R: Read>(&self, reader: R) -> Counted<'_, R> {
        Counted { reader, progress: self }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A reader that counts what is read.
pub(crate) struct Counted<'p, R> {
    reader: R,
    progress: &'p Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.reader.read(buffer)?;
        self.progress.add(read as u64);
        Ok(read)
    }
}
