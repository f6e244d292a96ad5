//! Integration tests of the engine on real LMDB and direct I/O.
//!
//! All of them are modules of one binary, so that the engine is linked once. Tests that need the feature `simulation` are in
//! the binary `simulation`: that feature scales the engine's sizes down.

mod backup;
mod backup_folder;
mod compact;
mod encryption;
mod entity_tags;
mod events;
mod imports;
mod lifecycle;
mod model;
mod multipart;
mod objects;
mod quota;
mod search;
mod space;
mod support;
mod verify;
mod versions;
mod warm_up;
