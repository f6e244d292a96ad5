//! MD5 (RFC 1321), one stream or up to sixteen at once.
//!
//! The entity tag of S3 is an MD5. One MD5 stream is a chain of dependent steps: about 0.6 GB/s per core, slower than disk and
//! network. Several streams, one per 32-bit lane of a vector register, take little longer than one: sixteen in AVX-512
//! registers, eight in those of AVX2. Therefore an executor hashes the buffers of its uploads together ([`update_lanes`]). A
//! processor without AVX2 uses scalar code. So does a single stream, unless there is AVX-512VL, which needs fewer instructions.
//!
//! MD5 provides no security here. The protocol requires it as the tag; block checks protect the bytes.

#[macro_use]
mod steps;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512vl;

/// Bytes of an MD5 block.
pub(crate) const MD5_BLOCK_BYTES: usize = 64;

const INITIAL: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];

/// The additive constants: floor(2^32 · |sin(i + 1)|).
const K: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// One stream of MD5.
#[derive(Clone, Debug)]
pub struct Md5 {
    state: [u32; 4],
    length: u64,
    tail: [u8; MD5_BLOCK_BYTES],
    tail_length: usize,
}

fn compress(state: &mut [u32; 4], block: &[u8; MD5_BLOCK_BYTES]) {
    let mut w = [0u32; 16];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! mix {
        (f, $x:ident, $y:ident, $z:ident) => {
            $z ^ ($x & ($y ^ $z))
        };
        (g, $x:ident, $y:ident, $z:ident) => {
            ($x & $z).wrapping_add($y & !$z)
        };
        (h, $x:ident, $y:ident, $z:ident) => {
            $x ^ $y ^ $z
        };
        (i, $x:ident, $y:ident, $z:ident) => {
            $y ^ ($x | !$z)
        };
    }
    macro_rules! step {
        ($f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $w:expr, $k:expr, $s:expr) => {
            $a = $b.wrapping_add(
                $a.wrapping_add(w[$w]).wrapping_add(K[$k]).wrapping_add(mix!($f, $b, $c, $d)).rotate_left($s),
            );
        };
    }
    steps!(step, a, b, c, d);
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(added);
    }
}

/// Adds blocks to the state of one stream, with the fastest instructions of this processor.
fn compress_all(state: &mut [u32; 4], blocks: &[[u8; MD5_BLOCK_BYTES]]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512vl() {
        #[expect(unsafe_code, reason = "a function for AVX-512VL may only run where there is AVX-512VL")]
        // SAFETY: the processor has the instructions.
        unsafe {
            avx512vl::update_one(state, blocks);
        }
        return;
    }
    blocks.iter().for_each(|block| compress(state, block));
}

#[cfg(target_arch = "x86_64")]
fn has_avx512vl() -> bool {
    std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl")
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

impl Md5 {
    /// Begins with no bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: INITIAL, length: 0, tail: [0; MD5_BLOCK_BYTES], tail_length: 0 }
    }

    /// The digest of `bytes`.
    pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
        let mut md5 = Self::new();
        md5.update(bytes);
        md5.finish()
    }

    /// Takes bytes in.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if self.tail_length > 0 {
            let (now, later) = bytes.split_at(bytes.len().min(MD5_BLOCK_BYTES - self.tail_length));
            self.tail[self.tail_length..self.tail_length + now.len()].copy_from_slice(now);
            self.tail_length += now.len();
            bytes = later;
            if self.tail_length < MD5_BLOCK_BYTES {
                return;
            }
            compress_all(&mut self.state, &[self.tail]);
        }
        let (blocks, rest) = bytes.as_chunks::<MD5_BLOCK_BYTES>();
        compress_all(&mut self.state, blocks);
        self.tail[..rest.len()].copy_from_slice(rest);
        self.tail_length = rest.len();
    }

    /// The digest of all bytes taken in.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        let mut padding = [0u8; 2 * MD5_BLOCK_BYTES];
        padding[0] = 0x80;
        let zeros = (MD5_BLOCK_BYTES + 55 - self.tail_length) % MD5_BLOCK_BYTES;
        padding[1 + zeros..9 + zeros].copy_from_slice(&bits.to_le_bytes());
        self.update(&padding[..9 + zeros]);
        let mut digest = [0u8; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

/// MD5 of `bytes`: what entity tags and `Content-MD5` carry.
#[must_use]
pub fn md5_digest(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes)
}

/// A stream and the bytes that it is to take in.
pub(crate) struct Lane<'a> {
    pub(crate) md5: &'a mut Md5,
    pub(crate) bytes: &'a [u8],
}

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
            Self::Avx512Vl => has_avx512vl(),
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

/// Returns the blocks of each lane, or `None` without a lane.
///
/// Surplus lanes hash the first stream, for nothing: a loop with conditions is slower.
#[cfg(target_arch = "x86_64")]
fn blocks_of<'b, const LANES: usize>(lanes: &[Lane<'b>]) -> Option<[&'b [[u8; MD5_BLOCK_BYTES]]; LANES]> {
    let mut streams = [lanes.first()?.bytes.as_chunks().0; LANES];
    for (stream, lane) in streams.iter_mut().zip(lanes) {
        *stream = lane.bytes.as_chunks().0;
    }
    Some(streams)
}

/// Most streams that [`update_lanes`] hashes at once on this processor; 1 if it has no instructions for more.
pub(crate) fn lanes_max() -> usize {
    Vectors::supported().last().map_or(1, Vectors::lanes)
}

/// Adds the same number of bytes to every lane (at most [`lanes_max`]): all whole blocks of the shortest lane.
///
/// Returns that number. Every stream must be at a block boundary.
pub(crate) fn update_lanes(lanes: &mut [Lane<'_>]) -> usize {
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
pub(crate) fn digest_together(payloads: &[&[u8]]) -> Vec<[u8; 16]> {
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
    use super::{
        INITIAL, Lane, MD5_BLOCK_BYTES, Md5, Vectors, compress, compress_all, digest_together, update_lanes,
    };
    use proptest::prelude::*;

    /// The test suite of RFC 1321, appendix A.5.
    #[test]
    fn the_examples_of_the_rfc() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex::encode(Md5::digest(text.as_bytes())), digest);
        }
    }

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
            prop_assert_eq!(md5.finish(), Md5::digest(&whole));
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
            let streams = &streams[..streams.len().min(super::lanes_max())];
            digests_are_those_of_separate_streams(streams, update_lanes)?;
        }

        #[test]
        fn payloads_hashed_together_have_the_digests_of_each(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..500), 0..=16),
        ) {
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).take(super::lanes_max()).collect();
            let each: Vec<_> = payloads.iter().map(|payload| Md5::digest(payload)).collect();
            prop_assert_eq!(digest_together(&payloads), each);
        }

        /// The examples of the RFC test only the fastest code of a single stream; this compares it with the scalar code.
        #[test]
        fn a_single_stream_has_the_state_of_scalar_code(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let (blocks, _) = bytes.as_chunks();
            let (mut scalar, mut fastest) = (INITIAL, INITIAL);
            blocks.iter().for_each(|block| compress(&mut scalar, block));
            compress_all(&mut fastest, blocks);
            prop_assert_eq!(scalar, fastest);
        }

        #[test]
        fn pieces_give_what_the_whole_gives(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
            let mut md5 = Md5::new();
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            md5.update(front);
            md5.update(back);
            prop_assert_eq!(md5.finish(), Md5::digest(&bytes));
        }
    }
}
