//! MD5 of sixteen streams in AVX-512 registers.
//!
//! Processes one block of each stream at a time, transposed: register n holds word n of all streams. AVX-512 computes each of
//! the round functions, and each rotation, in one instruction.

use crate::steps::{K, MD5_BLOCK_BYTES};
use crate::stream::{Lane, blocks_of};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_rol_epi32, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

/// Lanes of a register.
pub(crate) const LANES: usize = 16;

#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[u8; MD5_BLOCK_BYTES]) -> __m512i {
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    // SAFETY: the pointer is to 64 readable bytes, and the load needs no alignment.
    unsafe {
        _mm512_loadu_si512(bytes.as_ptr().cast())
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn register_of(words: &[u32; LANES]) -> __m512i {
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    // SAFETY: the pointer is to 64 readable bytes, and the load needs no alignment.
    unsafe {
        _mm512_loadu_si512(words.as_ptr().cast())
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn words_of(x: __m512i) -> [u32; LANES] {
    let mut words = [0u32; LANES];
    #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
    // SAFETY: the pointer is to 64 writable bytes, and the store needs no alignment.
    unsafe {
        _mm512_storeu_si512(words.as_mut_ptr().cast(), x);
    }
    words
}

/// Transposes four rows within each quarter of the registers.
///
/// Quarter q of register n of the result holds word 4q + n of rows 0 to 3.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose_quarters(r: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_unpacklo_epi32(r[0], r[1]), _mm512_unpackhi_epi32(r[0], r[1]));
    let (next_low, next_high) = (_mm512_unpacklo_epi32(r[2], r[3]), _mm512_unpackhi_epi32(r[2], r[3]));
    [
        _mm512_unpacklo_epi64(low, next_low),
        _mm512_unpackhi_epi64(low, next_low),
        _mm512_unpacklo_epi64(high, next_high),
        _mm512_unpackhi_epi64(high, next_high),
    ]
}

/// Transposes sixteen rows: register n of the result holds word n of each row.
#[target_feature(enable = "avx512f")]
#[inline]
fn transpose(rows: &[__m512i; LANES]) -> [__m512i; LANES] {
    let mut words = [_mm512_setzero_si512(); LANES];
    let groups = [
        transpose_quarters([rows[0], rows[1], rows[2], rows[3]]),
        transpose_quarters([rows[4], rows[5], rows[6], rows[7]]),
        transpose_quarters([rows[8], rows[9], rows[10], rows[11]]),
        transpose_quarters([rows[12], rows[13], rows[14], rows[15]]),
    ];
    for n in 0..4 {
        let [a, b, c, d] = [groups[0][n], groups[1][n], groups[2][n], groups[3][n]];
        // Quarters 0 and 1, then 2 and 3, of two groups.
        let (ab_low, ab_high) =
            (_mm512_shuffle_i32x4::<0b01_00_01_00>(a, b), _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b));
        let (cd_low, cd_high) =
            (_mm512_shuffle_i32x4::<0b01_00_01_00>(c, d), _mm512_shuffle_i32x4::<0b11_10_11_10>(c, d));
        // Even quarters, then odd ones.
        words[n] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_low, cd_low);
        words[n + 4] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_low, cd_low);
        words[n + 8] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_high, cd_high);
        words[n + 12] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_high, cd_high);
    }
    words
}

#[target_feature(enable = "avx512f")]
#[inline]
fn compress(state: &mut [__m512i; 4], w: &[__m512i; LANES]) {
    let [mut a, mut b, mut c, mut d] = *state;
    // Each constant is the truth table of a round function: bit 4x + 2y + z is its value for the bits x, y and z.
    macro_rules! mix {
        (f, $x:ident, $y:ident, $z:ident) => {
            _mm512_ternarylogic_epi32::<0xCA>($x, $y, $z)
        };
        (g, $x:ident, $y:ident, $z:ident) => {
            _mm512_ternarylogic_epi32::<0xE4>($x, $y, $z)
        };
        (h, $x:ident, $y:ident, $z:ident) => {
            _mm512_ternarylogic_epi32::<0x96>($x, $y, $z)
        };
        (i, $x:ident, $y:ident, $z:ident) => {
            _mm512_ternarylogic_epi32::<0x39>($x, $y, $z)
        };
    }
    macro_rules! step {
        ($f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $w:expr, $k:expr, $s:expr) => {
            let fixed = _mm512_add_epi32(_mm512_add_epi32($a, w[$w]), _mm512_set1_epi32(K[$k].cast_signed()));
            let sum = _mm512_add_epi32(fixed, mix!($f, $b, $c, $d));
            $a = _mm512_add_epi32($b, _mm512_rol_epi32::<$s>(sum));
        };
    }
    steps!(step, a, b, c, d);
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = _mm512_add_epi32(*word, added);
    }
}

/// Adds the first `blocks` blocks of every lane; at most [`LANES`] lanes.
#[target_feature(enable = "avx512f")]
pub(crate) fn update(lanes: &mut [Lane<'_>], blocks: usize) {
    let mut state = [_mm512_setzero_si512(); 4];
    for (word, register) in state.iter_mut().enumerate() {
        let mut words = [0; LANES];
        for (value, lane) in words.iter_mut().zip(lanes.iter()) {
            *value = lane.md5.state[word];
        }
        *register = register_of(&words);
    }
    let Some(streams) = blocks_of::<LANES>(lanes) else { return };
    // No closures here: the compiler does not inline functions for AVX-512 into those of the standard library that call them.
    let mut rows = [_mm512_setzero_si512(); LANES];
    for block in 0..blocks {
        for (row, stream) in rows.iter_mut().zip(&streams) {
            *row = load(&stream[block]);
        }
        compress(&mut state, &transpose(&rows));
    }
    for (word, register) in state.into_iter().enumerate() {
        for (lane, value) in lanes.iter_mut().zip(words_of(register)) {
            lane.md5.state[word] = value;
        }
    }
}
