//! The progress of a copy, a verification or a restoration.

/// Gets the number of bytes that are done, and about how many there are. Says whether to go on.
pub type Progress<'p> = dyn FnMut(u64, u64) -> bool + 'p;
