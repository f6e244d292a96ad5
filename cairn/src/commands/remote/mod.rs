//! Another S3 store: the source of an import, which is only read, or the target of an export.

mod answer;
mod checksum;
mod client;
mod listing;
mod order;
mod payload;
mod settings;
mod uploads;
mod write;

pub(crate) use answer::{Answer, Trouble};
pub(crate) use checksum::Checksum;
pub(crate) use client::{Remote, Variables, VersionRef};
pub(crate) use listing::{Entry, Page, Place};
pub(crate) use payload::Payload;
pub(crate) use settings::{Lock, Settings, fingerprint};
pub(crate) use uploads::Unfinished;
