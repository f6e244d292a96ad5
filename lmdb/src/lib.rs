//! lmdb
