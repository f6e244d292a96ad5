//! `cairn import`: moves in from another server.

mod buckets;
mod copy;
mod fitting;
mod groups;
mod journal;
mod loss;
mod objects;
mod permits;
mod plan;
mod run;
mod signals;
mod source;
mod steps;
mod tally;
mod target;
mod throttle;
mod verify;

use crate::commands::macros::noun;
use objects::Objects;
use plan::Plan;
use verify::Verify;

noun! {
    /// Move in from another server.
    struct Import("import"): ImportCommand { Plan, Objects, Verify }
}
