//! The steps of MD5 for one block (RFC 1321, section 3.4).

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
