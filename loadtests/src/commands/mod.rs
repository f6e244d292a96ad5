//! Commands beside the workloads.

pub mod clean;
pub mod files;
pub mod histories;
pub mod idle;
pub mod multipart;
pub mod null_server;
