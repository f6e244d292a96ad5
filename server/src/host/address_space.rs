//! The limit on address space.

use rustix::process::{Resource, getrlimit};

/// Address space for the map of a slice's metadata (512 GiB).
const OF_SLICE: u64 = 1 << 39;
/// Address space for the maps of the small stores, for memory and for a compaction (2 TiB).
const OF_PROCESS: u64 = 1 << 41;

/// Checks that the metadata can be mapped.
///
/// # Errors
/// The remedy. A process that is short of address space would refuse writes, or end, at a later time.
pub(crate) fn check(slices: usize) -> Result<(), String> {
    let needed = OF_PROCESS + slices as u64 * OF_SLICE;
    match getrlimit(Resource::As).current {
        Some(limit) if limit < needed => Err(format!(
            "the limit on address space is {limit} bytes, but metadata is mapped into memory, and {slices} slices need {needed}: \
             remove the limit (`ulimit -v unlimited`, LimitAS=infinity in the systemd unit); server.memory_limit bounds the memory"
        )),
        _ => Ok(()),
    }
}
