//! The web console (port 7602): its files, share links, and the management API for sessions.
//!
//! The browser talks only to this listener. It serves `/` and `/assets/…` from the binary, `/s/…` through `sharing`, and
//! `/session`, `/uploads` and `/api/v1/…` through `admin`, whose routes, roles and audit apply as on the management plane.
#![forbid(unsafe_code)]

// Used when the program is built.
#[cfg(test)]
mod bare;
#[cfg(test)]
mod bundle;
mod content_type;
mod files;
mod hosts;
mod service;

pub use files::ConsoleFiles;
pub use hosts::ConsoleHosts;
pub use service::ConsoleService;
