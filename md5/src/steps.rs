//! Constants and steps of MD5 (RFC 1321, sections 3.3 and 3.4).

/// Bytes of an MD5 block.
pub const MD5_BLOCK_BYTES: usize = 64;

/// The state before the first block (section 3.3).
pub(crate) const INITIAL: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];

/// The additive constants: floor(2^32 · |sin(i + 1)|).
pub(crate) const K: [u32; 64] = [
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
