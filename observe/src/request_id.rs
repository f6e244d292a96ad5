//! Request ids: 128 bits that no two requests share, as 32 upper-case hexadecimal characters.
//!
//! The same id stands in the response header, the request log and, in errors, in the body. A client of the management
//! plane may bring its own; what it may look like is decided here, since it will be written to logs and headers.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

/// Longest request id, in bytes: our own have 32, a trace header in use elsewhere up to about 100.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

const HEX: [u8; 16] = *b"0123456789ABCDEF";

/// The id of one request: visible ASCII, no spaces, at most [`REQUEST_ID_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId {
    length: u8,
    text: [u8; REQUEST_ID_BYTES_MAX],
}

impl RequestId {
    /// Takes over the id that a client sent, if it is harmless: 1 to [`REQUEST_ID_BYTES_MAX`] bytes of visible ASCII.
    ///
    /// What does not qualify gives `None`, and the request gets an id of ours: an id is no reason to refuse a request.
    #[must_use]
    pub fn from_client(value: &[u8]) -> Option<Self> {
        if value.is_empty() || value.len() > REQUEST_ID_BYTES_MAX || !value.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut text = [0; REQUEST_ID_BYTES_MAX];
        text[..value.len()].copy_from_slice(value);
        Some(Self { length: u8::try_from(value.len()).ok()?, text })
    }

    fn from_bits(high: u64, low: u64) -> Self {
        let mut text = [0; REQUEST_ID_BYTES_MAX];
        let bits = (u128::from(high) << 64) | u128::from(low);
        for (position, byte) in bits.to_be_bytes().into_iter().enumerate() {
            text[2 * position] = HEX[usize::from(byte >> 4)];
            text[2 * position + 1] = HEX[usize::from(byte & 0xf)];
        }
        Self { length: 32, text }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Both constructors put ASCII in.
        std::str::from_utf8(&self.text[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

/// Makes request ids for one executor; a few nanoseconds each, no lock, no system call.
///
/// A counter that starts at a random place and runs through a bijection gives the upper half: within one generator it
/// cannot repeat. The lower half mixes the same counter with a second random key, so that two generators, of two
/// executors or two starts, meet with the odds of 128 random bits. The ids are unique, not secret.
#[derive(Debug)]
pub struct RequestIds {
    counter: Cell<u64>,
    keys: [u64; 2],
}

/// An odd number whose multiples spread over all 64 bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl RequestIds {
    /// Seeds a generator from the operating system.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { counter: Cell::new(getrandom::u64()?), keys: [getrandom::u64()?, getrandom::u64()?] })
    }

    /// The next id.
    #[must_use]
    pub fn next(&self) -> RequestId {
        let count = self.counter.get().wrapping_add(SPREAD);
        self.counter.set(count);
        RequestId::from_bits(mix(count ^ self.keys[0]), mix(count.rotate_left(32) ^ self.keys[1]))
    }
}

/// A bijection of 64 bits in which every input bit reaches every output bit (xor-shifts and odd multiplications).
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_32_upper_case_hex_characters_and_never_repeat() {
        let generators = [RequestIds::new().unwrap(), RequestIds::new().unwrap()];
        let mut seen = HashSet::new();
        for _ in 0..20_000 {
            for generator in &generators {
                let id = generator.next();
                assert_eq!(id.len(), 32);
                assert!(id.bytes().all(|byte| HEX.contains(&byte)));
                assert!(seen.insert(id.as_str().to_owned()));
            }
        }
    }

    #[test]
    fn a_client_s_id_is_taken_over_only_when_it_is_harmless() {
        for fine in ["a", "018f3c5e-7b1a-7cc3-98c4-dc0c0c07398f", "Root=1-67891233-abcdef012345678912345678"]
        {
            assert_eq!(RequestId::from_client(fine.as_bytes()).unwrap().as_str(), fine);
        }
        let longest = "x".repeat(REQUEST_ID_BYTES_MAX);
        assert_eq!(&*RequestId::from_client(longest.as_bytes()).unwrap(), longest);
        let too_long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        for bad in ["", "a b", "a\tb", "a\r\nset-cookie: x", "\u{7f}", "caf\u{e9}", &too_long] {
            assert!(RequestId::from_client(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
