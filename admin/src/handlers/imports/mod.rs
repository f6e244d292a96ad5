//! The routes of imports: versions of another store, with the ids, dates and entity tags that they had there.
//!
//! A run belongs to one bucket. Its beginning is in the audit trail; the versions are not, one by one. The importer of the
//! command line is the client.

mod batch;
mod change;
mod checksum;
mod header_text;
mod headers;
mod run;
mod uploads;
mod version;

pub(crate) use batch::put_batch;
pub(crate) use change::change;
pub(crate) use run::{begin, get, list, pause, resume};
pub(crate) use uploads::{begin_upload, put_part};
pub(crate) use version::{PARAMETERS, put};
