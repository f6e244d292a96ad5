//! Another S3 store: the source of an import, which is only read, or the target of an export.

mod answer;
mod client;
mod listing;
mod payload;
mod settings;
mod write;

pub(crate) use answer::{Answer, Trouble};
pub(crate) use client::{Remote, Variables, VersionRef};
pub(crate) use listing::{Entry, Page, Place};
pub(crate) use payload::Payload;
pub(crate) use settings::{Lock, Settings, fingerprint};
