//! `cairn object`: lists, finds, counts, explains, reads, writes, copies, deletes and locks objects.

mod archive;
mod cp;
mod du;
mod find;
mod get;
mod history;
mod legal_hold;
mod list;
mod mv;
pub(crate) mod place;
mod put;
mod relocation;
mod retention;
mod rm;
mod spool;
mod stat;
mod undelete;

use archive::Archive;
use cp::Copy;
use du::DiskUsage;
use find::Find;
use get::Get;
use history::History;
use legal_hold::LegalHold;
use list::List;
use mv::Move;
use put::Put;
use retention::Retention;
use rm::Remove;
use stat::Stat;
use undelete::Undelete;

use crate::commands::macros::noun;

noun! {
    /// List, find, count, download, upload, copy, move, delete, undelete and lock objects. An object is given as
    /// <bucket>/<key>; in keys, * and ? match within one level, ** across levels, and [a-z] one character.
    struct Object("object"): ObjectCommand { List, Find, History, DiskUsage, Get, Put, Remove, Copy, Move, Archive, Stat, Retention, LegalHold, Undelete }
}
