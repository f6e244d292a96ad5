//! MD5 of one stream.

#[cfg(target_arch = "x86_64")]
use crate::avx512vl;
use crate::steps::{INITIAL, K, MD5_BLOCK_BYTES};
use crate::stream::Md5;

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
    if avx512vl::is_supported() {
        #[expect(unsafe_code, reason = "a function for AVX-512VL may only run where there is AVX-512VL")]
        // SAFETY: the processor has the instructions.
        unsafe {
            avx512vl::update_one(state, blocks);
        }
        return;
    }
    blocks.iter().for_each(|block| compress(state, block));
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
    let mut md5 = Md5::new();
    md5.update(bytes);
    md5.finish()
}

#[cfg(test)]
mod tests {
    use super::{compress, compress_all, md5_digest};
    use crate::steps::INITIAL;
    use crate::stream::Md5;
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
            assert_eq!(hex::encode(md5_digest(text.as_bytes())), digest);
        }
    }

    proptest! {
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
            prop_assert_eq!(md5.finish(), md5_digest(&bytes));
        }
    }
}
