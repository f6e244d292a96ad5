//! Integration tests of the crate through its public interface.
//!
//! All of them are modules of one binary, so that the crate is linked once.
#![allow(clippy::unwrap_used, reason = "tests")]

mod authentication_errors;
mod aws_examples;
mod botocore_vectors;
mod directory;
mod directory_full_disk;
mod given_keys;
mod named_policies;
mod presigned_cache;
mod signature_properties;
mod signer;
