//! The state of a stream, and streams side by side in lanes.

use crate::steps::MD5_BLOCK_BYTES;

/// One stream of MD5.
#[derive(Clone, Debug)]
pub struct Md5 {
    pub(crate) state: [u32; 4],
    pub(crate) length: u64,
    pub(crate) tail: [u8; MD5_BLOCK_BYTES],
    pub(crate) tail_length: usize,
}

/// A stream and the bytes that it is to take in.
#[derive(Debug)]
pub struct Lane<'a> {
    /// The stream.
    pub md5: &'a mut Md5,
    /// The bytes that [`update_lanes`] adds to it, as far as whole blocks reach.
    pub bytes: &'a [u8],
}

/// Returns the blocks of each lane, or `None` without a lane.
///
/// Surplus lanes hash the first stream, for nothing: a loop with conditions is slower.
#[cfg(target_arch = "x86_64")]
pub(crate) fn blocks_of<'b, const LANES: usize>(
    lanes: &[Lane<'b>],
) -> Option<[&'b [[u8; MD5_BLOCK_BYTES]]; LANES]> {
    let mut streams = [lanes.first()?.bytes.as_chunks().0; LANES];
    for (stream, lane) in streams.iter_mut().zip(lanes) {
        *stream = lane.bytes.as_chunks().0;
    }
    Some(streams)
}
