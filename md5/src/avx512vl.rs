//! MD5 of one or eight streams with the instructions of AVX-512VL.
//!
//! They compute each of the round functions, and each rotation, in one instruction. Steps depend on each other, so fewer
//! instructions in a row also make a single stream faster than scalar code.

use crate::avx2::{set_states, states_of, words_of_blocks};
use crate::steps::{K, MD5_BLOCK_BYTES};
use crate::stream::{Lane, blocks_of};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_rol_epi32,
    _mm_ternarylogic_epi32, _mm256_add_epi32, _mm256_rol_epi32, _mm256_set1_epi32, _mm256_ternarylogic_epi32,
};

/// Returns whether this processor has the instructions.
pub(crate) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl")
}

/// Lanes of a register.
pub(crate) const LANES: usize = crate::avx2::LANES;

/// A round function in one instruction. Each constant is a truth table: bit 4x + 2y + z is the value for the bits x, y and z.
macro_rules! mix {
    (f, $ternary:ident, $x:ident, $y:ident, $z:ident) => {
        $ternary::<0xCA>($x, $y, $z)
    };
    (g, $ternary:ident, $x:ident, $y:ident, $z:ident) => {
        $ternary::<0xE4>($x, $y, $z)
    };
    (h, $ternary:ident, $x:ident, $y:ident, $z:ident) => {
        $ternary::<0x96>($x, $y, $z)
    };
    (i, $ternary:ident, $x:ident, $y:ident, $z:ident) => {
        $ternary::<0x39>($x, $y, $z)
    };
}

#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn compress_eight(state: &mut [__m256i; 4], w: &[__m256i; 16]) {
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! step {
        ($f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $w:expr, $k:expr, $s:expr) => {
            let fixed = _mm256_add_epi32(_mm256_add_epi32($a, w[$w]), _mm256_set1_epi32(K[$k].cast_signed()));
            let sum = _mm256_add_epi32(fixed, mix!($f, _mm256_ternarylogic_epi32, $b, $c, $d));
            $a = _mm256_add_epi32($b, _mm256_rol_epi32::<$s>(sum));
        };
    }
    steps!(step, a, b, c, d);
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = _mm256_add_epi32(*word, added);
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
fn compress_one(state: &mut [__m128i; 4], block: &[u8; MD5_BLOCK_BYTES]) {
    let mut w = [0u32; 16];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! step {
        ($f:ident, $a:ident, $b:ident, $c:ident, $d:ident, $w:expr, $k:expr, $s:expr) => {
            // The sum of word and constant is known before the step, so its way through a scalar register costs no time.
            let known = _mm_cvtsi32_si128(w[$w].wrapping_add(K[$k]).cast_signed());
            let sum = _mm_add_epi32(_mm_add_epi32($a, known), mix!($f, _mm_ternarylogic_epi32, $b, $c, $d));
            $a = _mm_add_epi32($b, _mm_rol_epi32::<$s>(sum));
        };
    }
    steps!(step, a, b, c, d);
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = _mm_add_epi32(*word, added);
    }
}

/// Adds the first `blocks` blocks of every lane; at most [`LANES`] lanes.
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) fn update(lanes: &mut [Lane<'_>], blocks: usize) {
    let mut state = states_of(lanes);
    let Some(streams) = blocks_of::<LANES>(lanes) else { return };
    for block in 0..blocks {
        compress_eight(&mut state, &words_of_blocks(&streams, block));
    }
    set_states(lanes, state);
}

/// Adds `blocks` to the state of one stream.
#[target_feature(enable = "avx512f,avx512vl")]
pub(crate) fn update_one(state: &mut [u32; 4], blocks: &[[u8; MD5_BLOCK_BYTES]]) {
    let mut words = [_mm_cvtsi32_si128(0); 4];
    for (register, word) in words.iter_mut().zip(&*state) {
        *register = _mm_cvtsi32_si128(word.cast_signed());
    }
    for block in blocks {
        compress_one(&mut words, block);
    }
    for (word, register) in state.iter_mut().zip(words) {
        *word = _mm_cvtsi128_si32(register).cast_unsigned();
    }
}
