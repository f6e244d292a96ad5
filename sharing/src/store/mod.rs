//! The durable store of links: an LMDB environment in `<data-dir>/sharing`, with one writer.
//!
//! `record.rs` defines the tables. Requests read the records in mapped memory, so every request sees the durable state, and
//! the number of links does not matter for memory. One thread makes the changes; each is durable before it is answered.

mod changes;
mod environment;
mod inspect;
mod pages;
mod record;
mod seal;
mod state;
mod usage;
mod writer;

pub(crate) use changes::{Changes, Counted, LinkLimits};
pub use inspect::LinkFinding;
pub use pages::{LinkPage, LinkQuery};
pub(crate) use record::LinkRecord;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::check_fuzzed as check_fuzzed_record;
pub(crate) use seal::derive_unlock_key;
pub(crate) use state::LinkState;
pub(crate) use writer::open;
