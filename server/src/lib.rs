//! Configuration and assembly of the service.
//!
//! [`serve`] runs the server process from start to shutdown; `serve/planes.rs` has one short function per plane. [`check`]
//! runs the preflight checks.
#![forbid(unsafe_code)]

mod addresses;
mod budget;
mod certificates;
mod check;
pub mod config;
mod dev;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod host;
mod load;
mod memory_sizes;
mod serve;
mod small_file;

pub use check::{Checked, Verdict, check};
pub use error::ServeError;
pub use host::protection::restrict_new_files;
pub use load::{LoadError, Mode, ServeOptions, effective_config, load_settings};
pub use serve::{Ready, serve};
