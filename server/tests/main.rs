//! Integration tests of the crate, in one binary.
#![expect(clippy::unwrap_used, reason = "a test ends where its own preparation fails")]

mod configuration;
mod secret_files;
