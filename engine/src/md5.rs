//! MD5 (RFC 1321), one stream or eight at once.
//!
//! Eight streams use the lanes of AVX2 registers.
//!
//! The entity tag of S3 is an MD5. One MD5 stream is a chain of dependent steps: about 0.6 GB/s per core, slower than disk and
//! network. Eight streams, one per 32-bit lane of an AVX2 register, take little longer than one. Therefore an executor hashes
//! the buffers of its uploads together ([`update_lanes`]). A single stream, or a processor without AVX2, uses scalar code.
//!
//! MD5 provides no security here. The protocol requires it as the tag; block checks protect the bytes.

/// Most lanes of [`update_lanes`].
pub(crate) const LANES: usize = 8;
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

/// The 64 steps of a block, for any `step!` that works on the caller's kind of words: round, the four variables in turn, word,
/// constant, shift.
macro_rules! steps {
    ($step:ident, $a:ident, $b:ident, $c:ident, $d:ident) => {
        steps!(@round $step, f, $a, $b, $c, $d, 0, 1, 0, 7, 12, 17, 22);
        steps!(@round $step, g, $a, $b, $c, $d, 1, 5, 16, 5, 9, 14, 20);
        steps!(@round $step, h, $a, $b, $c, $d, 5, 3, 32, 4, 11, 16, 23);
        steps!(@round $step, i, $a, $b, $c, $d, 0, 7, 48, 6, 10, 15, 21);
    };
    (@round $step:ident, $f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $first:expr, $stride:expr, $k:expr,
     $s0:expr, $s1:expr, $s2:expr, $s3:expr) => {
        steps!(@four $step, $f, $a, $b, $c, $d, $first, $stride, $k, 0, $s0, $s1, $s2, $s3);
        steps!(@four $step, $f, $a, $b, $c, $d, $first, $stride, $k, 4, $s0, $s1, $s2, $s3);
        steps!(@four $step, $f, $a, $b, $c, $d, $first, $stride, $k, 8, $s0, $s1, $s2, $s3);
        steps!(@four $step, $f, $a, $b, $c, $d, $first, $stride, $k, 12, $s0, $s1, $s2, $s3);
    };
    (@four $step:ident, $f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $first:expr, $stride:expr, $k:expr, $i:expr,
     $s0:expr, $s1:expr, $s2:expr, $s3:expr) => {
        $step!($f, $a, $b, $c, $d, ($first + $i * $stride) % 16, $k + $i, $s0);
        $step!($f, $d, $a, $b, $c, ($first + ($i + 1) * $stride) % 16, $k + $i + 1, $s1);
        $step!($f, $c, $d, $a, $b, ($first + ($i + 2) * $stride) % 16, $k + $i + 2, $s2);
        $step!($f, $b, $c, $d, $a, ($first + ($i + 3) * $stride) % 16, $k + $i + 3, $s3);
    };
}

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
            compress(&mut self.state, &self.tail);
        }
        let (blocks, rest) = bytes.as_chunks::<MD5_BLOCK_BYTES>();
        blocks.iter().for_each(|block| compress(&mut self.state, block));
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

/// Whether [`update_lanes`] is faster than separate updates on this processor.
pub(crate) fn lanes_pay() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Adds the same number of bytes to every lane (at most [`LANES`]): all whole blocks of the shortest lane.
///
/// Returns that number. Every stream must be at a block boundary.
pub(crate) fn update_lanes(lanes: &mut [Lane<'_>]) -> usize {
    let blocks = lanes.iter().map(|lane| lane.bytes.len() / MD5_BLOCK_BYTES).min().unwrap_or(0);
    let bytes = blocks * MD5_BLOCK_BYTES;
    #[cfg(target_arch = "x86_64")]
    if lanes.len() <= LANES && lanes.iter().all(|lane| lane.md5.tail_length == 0) && lanes_pay() {
        #[expect(unsafe_code, reason = "a function for AVX2 may only run where there is AVX2")]
        // SAFETY: lanes_pay() found AVX2.
        unsafe {
            avx2::update(lanes, blocks);
        }
        return bytes;
    }
    for lane in lanes {
        lane.md5.update(&lane.bytes[..bytes]);
    }
    bytes
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Processes one block of eight streams at a time, transposed: register n holds word n of all streams.

    use super::{K, LANES, Lane, MD5_BLOCK_BYTES};
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_loadu_si256,
        _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_setr_epi32,
        _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
        _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
        _mm256_xor_si256,
    };

    #[target_feature(enable = "avx2")]
    fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi32::<LEFT>(x), _mm256_srli_epi32::<RIGHT>(x))
    }

    /// Transposes eight rows: register n of the result holds word n of each row.
    #[target_feature(enable = "avx2")]
    fn transpose(r: [__m256i; 8]) -> [__m256i; 8] {
        let t = [
            _mm256_unpacklo_epi32(r[0], r[1]),
            _mm256_unpackhi_epi32(r[0], r[1]),
            _mm256_unpacklo_epi32(r[2], r[3]),
            _mm256_unpackhi_epi32(r[2], r[3]),
            _mm256_unpacklo_epi32(r[4], r[5]),
            _mm256_unpackhi_epi32(r[4], r[5]),
            _mm256_unpacklo_epi32(r[6], r[7]),
            _mm256_unpackhi_epi32(r[6], r[7]),
        ];
        let u = [
            _mm256_unpacklo_epi64(t[0], t[2]),
            _mm256_unpackhi_epi64(t[0], t[2]),
            _mm256_unpacklo_epi64(t[1], t[3]),
            _mm256_unpackhi_epi64(t[1], t[3]),
            _mm256_unpacklo_epi64(t[4], t[6]),
            _mm256_unpackhi_epi64(t[4], t[6]),
            _mm256_unpacklo_epi64(t[5], t[7]),
            _mm256_unpackhi_epi64(t[5], t[7]),
        ];
        [
            _mm256_permute2x128_si256::<0x20>(u[0], u[4]),
            _mm256_permute2x128_si256::<0x20>(u[1], u[5]),
            _mm256_permute2x128_si256::<0x20>(u[2], u[6]),
            _mm256_permute2x128_si256::<0x20>(u[3], u[7]),
            _mm256_permute2x128_si256::<0x31>(u[0], u[4]),
            _mm256_permute2x128_si256::<0x31>(u[1], u[5]),
            _mm256_permute2x128_si256::<0x31>(u[2], u[6]),
            _mm256_permute2x128_si256::<0x31>(u[3], u[7]),
        ]
    }

    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: the pointer is to 32 readable bytes, and the load needs no alignment.
        unsafe {
            _mm256_loadu_si256(bytes.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx2")]
    fn words_of(x: __m256i) -> [u32; 8] {
        let mut words = [0u32; 8];
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: the pointer is to 32 writable bytes, and the store needs no alignment.
        unsafe {
            _mm256_storeu_si256(words.as_mut_ptr().cast(), x);
        }
        words
    }

    /// Loads one half of a block of each lane.
    #[target_feature(enable = "avx2")]
    fn gather(halves: [Option<&[u8; 32]>; LANES]) -> [__m256i; 8] {
        transpose(halves.map(|half| half.map_or(_mm256_setzero_si256(), |bytes| load(bytes))))
    }

    #[target_feature(enable = "avx2")]
    fn compress(state: &mut [__m256i; 4], w: &[__m256i; 16]) {
        let [mut a, mut b, mut c, mut d] = *state;
        let ones = _mm256_set1_epi32(-1);
        macro_rules! mix {
            (f, $x:ident, $y:ident, $z:ident) => {
                _mm256_xor_si256($z, _mm256_and_si256($x, _mm256_xor_si256($y, $z)))
            };
            (g, $x:ident, $y:ident, $z:ident) => {
                _mm256_or_si256(_mm256_and_si256($x, $z), _mm256_andnot_si256($z, $y))
            };
            (h, $x:ident, $y:ident, $z:ident) => {
                _mm256_xor_si256(_mm256_xor_si256($y, $z), $x)
            };
            (i, $x:ident, $y:ident, $z:ident) => {
                _mm256_xor_si256($y, _mm256_or_si256($x, _mm256_xor_si256($z, ones)))
            };
        }
        macro_rules! step {
            ($f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $w:expr, $k:expr, $s:expr) => {
                let fixed =
                    _mm256_add_epi32(_mm256_add_epi32($a, w[$w]), _mm256_set1_epi32(K[$k].cast_signed()));
                let sum = _mm256_add_epi32(fixed, mix!($f, $b, $c, $d));
                $a = _mm256_add_epi32($b, rotate::<$s, { 32 - $s }>(sum));
            };
        }
        steps!(step, a, b, c, d);
        for (word, added) in state.iter_mut().zip([a, b, c, d]) {
            *word = _mm256_add_epi32(*word, added);
        }
    }

    /// Adds the first `blocks` blocks of every lane.
    #[target_feature(enable = "avx2")]
    pub(super) fn update(lanes: &mut [Lane<'_>], blocks: usize) {
        let mut state = [_mm256_setzero_si256(); 4];
        for (word, register) in state.iter_mut().enumerate() {
            let of = |lane: usize| lanes.get(lane).map_or(0, |lane| lane.md5.state[word].cast_signed());
            *register = _mm256_setr_epi32(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7));
        }
        let mut streams: [&[[u8; MD5_BLOCK_BYTES]]; LANES] = [&[]; LANES];
        for (stream, lane) in streams.iter_mut().zip(lanes.iter()) {
            *stream = lane.bytes.as_chunks().0;
        }
        for block in 0..blocks {
            let halves = streams.map(|stream| stream.get(block).map(|block| block.as_chunks::<32>().0));
            let first = gather(halves.map(|halves| halves.and_then(<[_]>::first)));
            let second = gather(halves.map(|halves| halves.and_then(<[_]>::last)));
            let mut words = [_mm256_setzero_si256(); 16];
            words[..8].copy_from_slice(&first);
            words[8..].copy_from_slice(&second);
            compress(&mut state, &words);
        }
        for (word, register) in state.into_iter().enumerate() {
            for (lane, value) in lanes.iter_mut().zip(words_of(register)) {
                lane.md5.state[word] = value;
            }
        }
        for lane in lanes {
            lane.md5.length = lane.md5.length.wrapping_add((blocks * MD5_BLOCK_BYTES) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lane, Md5, update_lanes};
    use proptest::prelude::*;

    fn hex(digest: [u8; 16]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

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
            assert_eq!(hex(Md5::digest(text.as_bytes())), digest);
        }
    }

    proptest! {
        /// Lanes of different lengths and states give the same digests as separate streams.
        #[test]
        fn lanes_do_not_disturb_one_another(
            streams in prop::collection::vec((0usize..5, prop::collection::vec(any::<u8>(), 0..700)), 1..9),
        ) {
            let mut states: Vec<Md5> = streams.iter().map(|(blocks, bytes)| {
                let mut md5 = Md5::new();
                md5.update(&vec![7; blocks * 64]);
                let _ = bytes;
                md5
            }).collect();
            let mut lanes: Vec<Lane<'_>> =
                states.iter_mut().zip(&streams).map(|(md5, (_, bytes))| Lane { md5, bytes }).collect();
            let taken = update_lanes(&mut lanes);
            for (mut md5, (blocks, bytes)) in states.into_iter().zip(&streams) {
                md5.update(&bytes[taken..]);
                let mut whole = vec![7; blocks * 64];
                whole.extend_from_slice(bytes);
                prop_assert_eq!(md5.finish(), Md5::digest(&whole));
            }
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
