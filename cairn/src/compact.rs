//! `cairn storage compact`: a stopped store's metadata without the space that deletions freed in it.

use std::path::Path;

use argh::{ArgsInfo, FromArgs};
use cairn_engine::{Compaction, compact_store};

use crate::failure::Outcome;
use crate::output;

/// Give the metadata space that deletions freed back to the file system. The server must be stopped; each part of the
/// metadata needs room for a copy of what it holds. Needs no secrets.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "compact")]
pub(crate) struct Compact {
    /// the data folder
    #[argh(option, arg_name = "folder")]
    data_dir: String,
}

impl Compact {
    /// Compacts, with a line for each environment; fails when the store is in use, damaged, or has no room for a copy.
    pub(crate) fn run(&self) -> Outcome {
        let data_dir = Path::new(&self.data_dir);
        let (mut before, mut after) = (0, 0);
        // That nobody can be told is no reason to stop half-way.
        let mut told = Ok(());
        let done = compact_store(data_dir, |path, compaction| {
            before += compaction.bytes_before;
            after += compaction.bytes_after;
            let printed = output::print(&line(path.strip_prefix(data_dir).unwrap_or(path), compaction));
            told = std::mem::replace(&mut told, Ok(())).and(printed);
        });
        done.map_err(|error| error.to_string())?;
        told.and(output::print(&format!("{before} bytes of metadata before, {after} now\n")))
    }
}

fn line(path: &Path, compaction: Compaction) -> String {
    let Compaction { bytes_before, bytes_after, records } = compaction;
    let path = path.display();
    if bytes_after < bytes_before {
        format!("{path}: {bytes_before} bytes before, {bytes_after} now, {records} records checked\n")
    } else {
        format!("{path}: {bytes_before} bytes, {records} records, nothing to gain\n")
    }
}
