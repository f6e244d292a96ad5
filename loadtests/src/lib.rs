//! An S3 load generator: a closed loop over keep-alive connections, bodies that can be verified, latencies from HDR
//! histograms. `README.md` tells how it is used and how far it can be trusted.
//!
//! From the outside in: [`arguments`] and [`plan`] say what to do, [`run`] starts the threads of `worker`, each with one `lane`
//! or more, which asks `operation` what comes next, has `exchange` build a head with [`request`] (signed by
//! [`signature`]), sends it over its `connection` and counts the outcome in `tally`; [`report`] is what comes out.
//!
//! It shares no code with the server, so that neither repeats the other's mistakes.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod clean;
mod connection;
pub mod content;
mod exchange;
pub mod failure;
pub mod files;
pub mod histories;
pub mod idle;
pub mod key_space;
mod lane;
pub mod multipart;
pub mod null_server;
pub mod operation;
pub mod plan;
mod process;
mod progress;
pub mod random;
pub mod report;
pub mod request;
pub mod response;
pub mod run;
pub mod server;
pub mod signature;
mod sizes;
pub mod table;
mod tally;
#[cfg(test)]
mod test_plans;
mod text;
pub mod units;
mod worker;
mod xml;

pub use sizes::Sizes;
