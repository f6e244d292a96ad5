//! Prints to standard output and standard error. No other module prints.
//!
//! A write error is a failure. A closed pipe is not, because its reader has what it needs, except for a secret that is shown
//! only once.

pub(crate) mod confirmation;
pub(crate) mod new_file;
pub(crate) mod progress;
pub(crate) mod table;

use std::io::{ErrorKind, Result, Write};

use crate::failure::{Failure, Outcome};

/// Prints text to standard output. Fails if it cannot be written, but not if the reader has closed the pipe.
pub(crate) fn print(text: &str) -> Outcome {
    match write(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("the output could not be written: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Like [`print`], for output without an end. Returns whether the reader still reads.
pub(crate) fn print_more(text: &str) -> std::result::Result<bool, Failure> {
    match write(text) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("the output could not be written: {error}").into()),
    }
}

/// Like [`print`], for text that is shown only once: fails on a closed pipe too, with `lost` in the message.
pub(crate) fn print_secret(text: &str, lost: &str) -> Outcome {
    write(text).map_err(|error| format!("the output could not be written: {error}\n  {lost}").into())
}

fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints text to standard error.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
