//! MD5 of eight streams in AVX2 registers.
//!
//! Processes one block of each stream at a time, transposed: register n holds word n of all streams.

use crate::steps::{K, MD5_BLOCK_BYTES};
use crate::stream::{Lane, blocks_of};
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setzero_si256, _mm256_slli_epi32,
    _mm256_srli_epi32, _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

/// Lanes of a register.
pub(crate) const LANES: usize = 8;

#[target_feature(enable = "avx2")]
#[inline]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi32::<LEFT>(x), _mm256_srli_epi32::<RIGHT>(x))
}

/// Transposes eight rows: register n of the result holds word n of each row.
#[target_feature(enable = "avx2")]
#[inline]
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
#[inline]
fn load(bytes: &[u8; 32]) -> __m256i {
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    // SAFETY: the pointer is to 32 readable bytes, and the load needs no alignment.
    unsafe {
        _mm256_loadu_si256(bytes.as_ptr().cast())
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn words_of(x: __m256i) -> [u32; 8] {
    let mut words = [0u32; 8];
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    // SAFETY: the pointer is to 32 writable bytes, and the store needs no alignment.
    unsafe {
        _mm256_storeu_si256(words.as_mut_ptr().cast(), x);
    }
    words
}

#[target_feature(enable = "avx2")]
#[inline]
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
            let fixed = _mm256_add_epi32(_mm256_add_epi32($a, w[$w]), _mm256_set1_epi32(K[$k].cast_signed()));
            let sum = _mm256_add_epi32(fixed, mix!($f, $b, $c, $d));
            $a = _mm256_add_epi32($b, rotate::<$s, { 32 - $s }>(sum));
        };
    }
    steps!(step, a, b, c, d);
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = _mm256_add_epi32(*word, added);
    }
}

/// Returns the states of the lanes, one word of all lanes in each register.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn states_of(lanes: &[Lane<'_>]) -> [__m256i; 4] {
    let mut state = [_mm256_setzero_si256(); 4];
    for (word, register) in state.iter_mut().enumerate() {
        let of = |lane: usize| lanes.get(lane).map_or(0, |lane| lane.md5.state[word].cast_signed());
        *register = _mm256_setr_epi32(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7));
    }
    state
}

/// Gives the lanes their states back.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn set_states(lanes: &mut [Lane<'_>], state: [__m256i; 4]) {
    for (word, register) in state.into_iter().enumerate() {
        for (lane, value) in lanes.iter_mut().zip(words_of(register)) {
            lane.md5.state[word] = value;
        }
    }
}

/// Returns the words of one block of each stream: register n holds word n.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn words_of_blocks(
    streams: &[&[[u8; MD5_BLOCK_BYTES]]; LANES],
    block: usize,
) -> [__m256i; MD5_BLOCK_BYTES / 4] {
    // No closures here: the compiler does not inline functions for AVX2 into those of the standard library that call them.
    let mut halves = [[_mm256_setzero_si256(); LANES]; 2];
    for (lane, stream) in streams.iter().enumerate() {
        let (parts, _) = stream[block].as_chunks::<32>();
        halves[0][lane] = load(&parts[0]);
        halves[1][lane] = load(&parts[1]);
    }
    let mut words = [_mm256_setzero_si256(); 16];
    words[..8].copy_from_slice(&transpose(halves[0]));
    words[8..].copy_from_slice(&transpose(halves[1]));
    words
}

/// Adds the first `blocks` blocks of every lane; at most [`LANES`] lanes.
#[target_feature(enable = "avx2")]
pub(crate) fn update(lanes: &mut [Lane<'_>], blocks: usize) {
    let mut state = states_of(lanes);
    let Some(streams) = blocks_of::<LANES>(lanes) else { return };
    for block in 0..blocks {
        compress(&mut state, &words_of_blocks(&streams, block));
    }
    set_states(lanes, state);
}
