//! Content of a response while it arrives.

use std::io::{Error as IoError, ErrorKind, Read, Write};

use crate::failure::{Failure, Outcome};

/// The size of the buffer between a connection and a file, in bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// The error of a download that has begun.
#[derive(Debug)]
pub(crate) enum Incomplete {
    /// The server sent no more.
    Content(IoError),
    /// What arrived could not be written.
    Output(IoError),
}

impl Incomplete {
    /// Returns the failure of the command: of `cut` for content that ended early, of `not_written` for the output.
    pub(crate) fn failure(
        self,
        cut: fn(String) -> Failure,
        not_written: impl FnOnce(IoError) -> Failure,
    ) -> Failure {
        match self {
            Self::Content(error) => {
                cut(format!("the server sent only a part: {error}\n  its log says why, if it is running"))
            }
            Self::Output(error) => not_written(error),
        }
    }
}

/// Copies content while it arrives. Returns its size in bytes.
pub(crate) fn receive(mut content: impl Read, out: &mut impl Write) -> Result<u64, Incomplete> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut received = 0;
    loop {
        let read = match content.read(&mut buffer) {
            Ok(0) => return Ok(received),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Incomplete::Content(error)),
        };
        out.write_all(buffer.get(..read).unwrap_or_default()).map_err(Incomplete::Output)?;
        received += read as u64;
    }
}

/// Copies content to standard output while it arrives. A reader that closes the pipe has what it needs.
pub(crate) fn receive_to_stdout(content: impl Read) -> Outcome {
    let mut out = std::io::stdout().lock();
    let received = receive(content, &mut out).and_then(|_| out.flush().map_err(Incomplete::Output));
    match received {
        Err(Incomplete::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        received => received.map_err(|error| {
            error.failure(Failure::NoResponse, |error| format!("the download failed: {error}").into())
        }),
    }
}
