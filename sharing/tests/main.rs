//! Integration tests of the crate through its public interface.
//!
//! All of them are modules of one binary, so that the crate is linked once.
#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod downloads;
mod full_disk;
mod links;
mod passwords;
mod support;
