//! The store that objects are imported from. It is only read.

mod answer;
mod client;
mod listing;
mod settings;

pub(super) use answer::{Answer, Trouble};
pub(super) use client::{Source, VersionRef};
pub(super) use listing::{Entry, Page, Place};
pub(super) use settings::{Lock, Settings, fingerprint};
