//! `cairn object`: lists, reads, writes, copies and deletes objects through the management plane.

mod cp;
mod get;
mod glob;
mod list;
pub(crate) mod place;
mod put;
mod rm;
mod stat;

use cp::Copy;
use get::Get;
use list::List;
use put::Put;
use rm::Remove;
use stat::Stat;

use crate::commands::macros::noun;

noun! {
    /// List, download, upload, copy and delete objects. An object is given as <bucket>/<key>; in keys, * and ? match within one
    /// level, ** across levels, and [a-z] one character.
    struct Object("object"): ObjectCommand { List, Get, Put, Remove, Copy, Stat }
}
