//! Small stores of records: links, accounts, webhooks and the audit trail.
//!
//! A small store is an LMDB environment with a few tables, which belongs to one object store and is described by a
//! [`StoreSchema`]. One thread changes it ([`Writer`], [`WriterThread`]), and one answers its long queries
//! ([`ReaderThread`]). [`SealingKey`] encrypts the secrets in its records. All small stores answer a full disk, damage,
//! overload and a failed device in the same way ([`StoreFailure`]); `docs/internals/small-stores.md` says how and why.

// The layers, from bottom to top: a module imports only from those above it in this list.
mod schema;
mod seal;

mod error;

mod reader;
mod store;
mod writer;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use error::{StoreFailure, StoreOpenError};
pub use reader::ReaderThread;
pub use schema::{Headroom, StoreSchema};
pub use seal::{SealingKey, derive_key};
pub use store::{LoadError, Loading, Space, TableStore};
pub use writer::{Change, ChangeQueue, Next, Writer, WriterThread};
