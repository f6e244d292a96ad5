//! `cairn import`: copies objects, accounts and settings from another server.

mod accounts;
mod archive;
mod buckets;
mod changes;
mod copy;
mod fitting;
mod groups;
mod here;
mod iam;
mod journal;
mod loss;
mod objects;
mod pause;
mod permits;
mod plan;
mod run;
mod samples;
mod settings;
mod small;
mod steps;
mod tally;
mod target;
mod throttle;
mod translation;
mod verify;
mod wanted;
mod watch;

use crate::commands::macros::noun;
use accounts::Accounts;
use objects::Objects;
use pause::{Pause, Resume};
use plan::Plan;
use settings::Settings;
use verify::Verify;

noun! {
    /// Copy objects, accounts and settings from another server.
    struct Import("import"): ImportCommand { Plan, Objects, Pause, Resume, Accounts, Settings, Verify }
}
