//! An S3 load generator: a closed loop over keep-alive connections, bodies that can be verified, latencies from HDR
//! histograms. `README.md` explains how to use it and how far its results can be trusted.
//!
//! [`arguments`] and [`plan`] say what to do. [`run`] starts the threads; each drives one connection or more. For each
//! connection, `run::chooser` decides the next operation, `run::exchange` builds its request head with
//! [`http::request`] (signed by [`http::signature`]) and sends it over an `http::connection`; `measure::statistics`
//! counts the outcome. [`report`] is the result.
//!
//! It shares no code with the server, so that a mistake in one is not repeated in the other.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod commands;
pub mod failure;
pub mod http;
mod measure;
pub mod objects;
pub mod plan;
pub mod random;
pub mod report;
pub mod run;
#[cfg(test)]
mod test_plans;
pub mod units;
pub mod workload;

pub use objects::sizes::Sizes;
