//! MD5 of several streams at once, in the lanes of vector registers.

use crate::steps::MD5_BLOCK_BYTES;
use crate::stream::{Lane, Md5};
#[cfg(target_arch = "x86_64")]
use crate::{avx2, avx512, avx512vl};

/// Instructions that hash several streams at once.
#[derive(Clone, Copy, Debug)]
enum Vectors {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx512Vl,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Vectors {
    /// All, in ascending order of lanes, the faster ones first.
    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Self::Avx512Vl, Self::Avx2, Self::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    const ALL: &[Self] = &[];

    /// Returns those of this processor, in the order of [`Vectors::ALL`].
    fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|vectors| match vectors {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vl => avx512vl::is_supported(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
        })
    }

    const fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vl => avx512vl::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::LANES,
        }
    }

    /// Adds the first `blocks` blocks of every lane. The processor must have the instructions.
    fn update(self, lanes: &mut [Lane<'_>], blocks: usize) {
        assert!(lanes.len() <= self.lanes(), "a register has a lane for each stream");
        assert!(lanes.iter().all(|lane| lane.md5.tail_length == 0), "streams are at block boundaries");
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                #[expect(unsafe_code, reason = "a function for AVX-512 may only run where there is AVX-512")]
                // SAFETY: values of this variant come from supported().
                unsafe {
                    avx512::update(lanes, blocks);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vl => {
                #[expect(
                    unsafe_code,
                    reason = "a function for AVX-512VL may only run where there is AVX-512VL"
                )]
                // SAFETY: values of this variant come from supported().
                unsafe {
                    avx512vl::update(lanes, blocks);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                #[expect(unsafe_code, reason = "a function for AVX2 may only run where there is AVX2")]
                // SAFETY: values of this variant come from supported().
                unsafe {
                    avx2::update(lanes, blocks);
                }
            }
        }
        for lane in lanes {
            lane.md5.length = lane.md5.length.wrapping_add((blocks * MD5_BLOCK_BYTES) as u64);
        }
    }
}

/// Most streams that [`update_lanes`] hashes at once on this processor; 1 if it has no instructions for more.
pub fn lanes_max() -> usize {
    Vectors::supported().last().map_or(1, Vectors::lanes)
}

/// Adds the same number of bytes to every lane (at most [`lanes_max`]): all whole blocks of the shortest lane.
///
/// Returns that number. Every stream must be at a block boundary.
pub fn update_lanes(lanes: &mut [Lane<'_>]) -> usize {
    let blocks = lanes.iter().map(|lane| lane.bytes.len() / MD5_BLOCK_BYTES).min().unwrap_or(0);
    let bytes = blocks * MD5_BLOCK_BYTES;
    // The narrowest registers that are wide enough: wider ones take longer on some processors.
    let vectors = Vectors::supported().find(|vectors| lanes.len() <= vectors.lanes());
    match (vectors, &mut *lanes) {
        (_, [lane]) => lane.md5.update(&lane.bytes[..bytes]),
        (Some(vectors), _) => vectors.update(lanes, blocks),
        (None, _) => {
            for lane in lanes {
                lane.md5.update(&lane.bytes[..bytes]);
            }
        }
    }
    bytes
}

/// Returns the digest of each payload. There are at most [`lanes_max`].
pub fn digest_together(payloads: &[&[u8]]) -> Vec<[u8; 16]> {
    let mut streams = vec![Md5::new(); payloads.len()];
    // All payloads with a whole block left have been hashed up to here.
    let mut done = 0;
    loop {
        let mut lanes: Vec<_> = streams
            .iter_mut()
            .zip(payloads)
            .filter(|(_, payload)| payload.len() >= done + MD5_BLOCK_BYTES)
            .map(|(md5, payload)| Lane { md5, bytes: &payload[done..] })
            .collect();
        if lanes.is_empty() {
            break;
        }
        done += update_lanes(&mut lanes);
    }
    let ended = streams.into_iter().zip(payloads).map(|(mut md5, payload)| {
        let (_, rest) = payload.as_chunks::<MD5_BLOCK_BYTES>();
        md5.update(rest);
        md5.finish()
    });
    ended.collect()
}

#[cfg(test)]
mod tests {
    use super::{Vectors, digest_together, lanes_max, update_lanes};
    use crate::digest::md5_digest;
    use crate::steps::MD5_BLOCK_BYTES;
    use crate::stream::{Lane, Md5};
    use proptest::prelude::*;

    /// Hashes some blocks of each stream alone, then the bytes with `update`, then what it left.
    fn digests_are_those_of_separate_streams(
        streams: &[(usize, Vec<u8>)],
        update: impl FnOnce(&mut [Lane<'_>]) -> usize,
    ) -> Result<(), TestCaseError> {
        let mut states = vec![Md5::new(); streams.len()];
        for (md5, (blocks, _)) in states.iter_mut().zip(streams) {
            md5.update(&vec![7; blocks * MD5_BLOCK_BYTES]);
        }
        let mut lanes: Vec<Lane<'_>> =
            states.iter_mut().zip(streams).map(|(md5, (_, bytes))| Lane { md5, bytes }).collect();
        let taken = update(&mut lanes);
        for (mut md5, (blocks, bytes)) in states.into_iter().zip(streams) {
            md5.update(&bytes[taken..]);
            let whole = [vec![7; blocks * MD5_BLOCK_BYTES], bytes.clone()].concat();
            prop_assert_eq!(md5.finish(), md5_digest(&whole));
        }
        Ok(())
    }

    proptest! {
        /// Lanes of different lengths and states give the same digests as separate streams, with all instructions.
        #[test]
        fn lanes_do_not_disturb_one_another(
            streams in prop::collection::vec((0usize..5, prop::collection::vec(any::<u8>(), 0..700)), 1..17),
        ) {
            for vectors in Vectors::supported() {
                let streams = &streams[..streams.len().min(vectors.lanes())];
                digests_are_those_of_separate_streams(streams, |lanes| {
                    let blocks = lanes.iter().map(|lane| lane.bytes.len() / MD5_BLOCK_BYTES).min().unwrap_or(0);
                    vectors.update(lanes, blocks);
                    blocks * MD5_BLOCK_BYTES
                })?;
            }
            let streams = &streams[..streams.len().min(lanes_max())];
            digests_are_those_of_separate_streams(streams, update_lanes)?;
        }

        #[test]
        fn payloads_hashed_together_have_the_digests_of_each(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..500), 0..=16),
        ) {
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).take(lanes_max()).collect();
            let each: Vec<_> = payloads.iter().map(|payload| md5_digest(payload)).collect();
            prop_assert_eq!(digest_together(&payloads), each);
        }
    }
}
