//! Verifications on demand: the registry of the running ones, and signed proofs of their findings.

mod proof;
mod registry;

pub(crate) use proof::signed_proof;
pub use registry::Verifications;
pub(crate) use registry::{RunningVerification, VerificationPermit};
