//! Searches and counts over all objects below a prefix.
//!
//! They run in the background. They examine every key, so each call has bounds. It reads in short steps and rests in between
//! like all background work.

mod find;
mod history;
mod usage;
