//! Tests on simulated disks: power cuts and failing devices. They need the feature `simulation`.

mod io_errors;
mod power_cuts;
#[path = "../support/mod.rs"]
mod support;
