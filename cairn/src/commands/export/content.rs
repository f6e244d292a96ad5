//! Reads the content of versions from the server that is left.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use super::listing::Version;
use crate::client::{Client, Request};
use crate::commands::remote::Trouble;
use crate::failure::Failure;

/// The error of a version that was not exported, or of the whole command.
#[derive(Debug)]
pub(super) enum Problem {
    /// Others can be exported.
    Version(String),
    /// The target cannot do it now. Whether it has done it is unknown.
    Busy(String),
    /// The command cannot go on.
    Command(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            // The token does not allow it, for none of them.
            Failure::Failed(message) if message.starts_with("FORBIDDEN") || message.starts_with("UNAUTH") => {
                Self::Command(Failure::Failed(message))
            }
            Failure::Failed(message) => Self::Version(message),
            failure => Self::Command(failure),
        }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Version(message)
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoAnswer(why) => Self::Command(Failure::NoResponse(why)),
            Trouble::Stopped => Self::Command(interrupted()),
            Trouble::Refused { status, ref code, .. } => {
                let is_final = matches!(
                    code.as_str(),
                    "NoSuchBucket" | "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "QuotaExceeded"
                ) || status == 507;
                let text = trouble.text_of("target");
                match status {
                    _ if is_final => Self::Command(text.into()),
                    408 | 429 | 500 | 502..=504 => Self::Busy(text),
                    _ => Self::Version(text),
                }
            }
            Trouble::Wrong(why) => Self::Version(why),
        }
    }
}

/// The origin of content: a bucket that a client reads.
pub(super) struct Origin<'a> {
    pub(super) client: &'a Client,
    pub(super) bucket: &'a str,
    pub(super) stop: &'a AtomicBool,
}

impl Origin<'_> {
    /// Begins to read `size` bytes of a version at an offset; all of them without.
    pub(super) fn read(
        &self,
        version: &Version,
        range: Option<(u64, u64)>,
    ) -> Result<impl Read + use<'_>, Failure> {
        let request = Request::get(version.content_route(self.bucket)).long_running();
        let download = self.client.download_range(&request, range)?;
        if download.etag.as_deref() != Some(version.etag()) {
            return Err("it was overwritten while it was exported: run the export again".into());
        }
        Ok(Stoppable { content: download.content, stop: self.stop })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Content that ends with an error when the user wants the command to end.
struct Stoppable<'a> {
    content: Box<dyn Read>,
    stop: &'a AtomicBool,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("the export was interrupted"));
        }
        self.content.read(buffer)
    }
}

/// Returns the failure of a command that the user has ended.
pub(super) fn interrupted() -> Failure {
    Failure::Interrupted("the export was interrupted; the same command continues it".to_owned())
}
