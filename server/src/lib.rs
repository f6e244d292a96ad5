//! Configuration and assembly of the service: from a command line to listeners that serve, and back to a clean end.
//!
//! [`serve`] is the whole life of the server process, from top to bottom; `planes.rs` has one short function per plane.
#![forbid(unsafe_code)]

mod audit;
mod budget;
mod certificates;
mod check;
pub mod config;
mod dev_certificate;
mod dev_secrets;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod guide;
mod host;
mod identity;
mod load;
mod memory;
mod not_ready;
mod planes;
mod quote;
mod serve;
mod shutdown;
mod signals;
mod small_file;
mod subsystems;
mod supervisor;

pub use check::{Checked, Verdict, check};
pub use error::ServeError;
pub use load::{LoadError, Mode, ServeOptions, load_settings};
pub use serve::{Ready, serve};
