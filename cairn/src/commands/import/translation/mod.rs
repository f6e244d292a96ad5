//! Translates AWS policy documents as MinIO understands them.
//!
//! `source.rs` reads and evaluates a document, `statements.rs` translates it, `intersect.rs` restricts a translation to a
//! session policy, and `compare.rs` names what differs. Nothing here does I/O.

mod actions;
mod compare;
mod intersect;
mod pattern;
mod source;
mod statements;
#[cfg(test)]
mod tests;

pub(super) use compare::{Difference, Differences, Source, compare};
pub(super) use intersect::intersection;
pub(super) use source::{Document, has_username};
pub(super) use statements::{check, translate};
