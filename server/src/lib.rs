//! Configuration and assembly of the service: from a command line to listeners that serve, and back to a clean end.
#![forbid(unsafe_code)]

pub mod config;
mod dev_secrets;
mod load;
mod memory;

pub use load::{LoadError, Mode, ServeOptions, load_settings};
