//! Unlock tokens: prove that a visitor has given the password of a share.
//!
//! A token is base64url of:
//! ```text
//! offset  size  content
//! 0       8     when it expires, in ms (big-endian)
//! 8       16    random: identifies the visitor
//! 24      32    HMAC-SHA-256 of: share id (16), generation of the password (8), the first 24 bytes
//! ```
//! Nothing is stored of a token. It ends with its time, and with a change of the password, because that changes the
//! generation. Whether the share was revoked is read from its record at each request.

use crate::limits::UNLOCK_PERIOD;
use crate::types::id::LinkId;
use crate::types::password::GENERATION_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_model::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

/// Random bytes that identify a visitor.
pub(crate) const VISITOR_BYTES: usize = 16;
const SIGNED_BYTES: usize = 8 + VISITOR_BYTES;
const MAC_BYTES: usize = 32;
const TOKEN_BYTES: usize = SIGNED_BYTES + MAC_BYTES;

/// The permission that a correct password gives.
#[derive(Clone, Debug)]
pub struct Unlock {
    /// The token, for the cookie or the header `x-service-unlock`.
    pub token: Zeroizing<String>,
    /// The end of the unlock.
    pub expires_at: Timestamp,
}

/// Makes and checks unlock tokens.
pub(crate) struct UnlockKey(Zeroizing<[u8; 32]>);

impl UnlockKey {
    pub(crate) const fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self(key)
    }

    /// Makes a token for a visitor who gave the password of this generation.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub(crate) fn issue(
        &self,
        share: LinkId,
        generation: [u8; GENERATION_BYTES],
        now: Timestamp,
    ) -> io::Result<Unlock> {
        let period = u64::try_from(UNLOCK_PERIOD.as_millis()).expect("hours are few milliseconds");
        let expires_at = Timestamp(now.0 + period);
        let mut token = [0; TOKEN_BYTES];
        token[..8].copy_from_slice(&expires_at.0.to_be_bytes());
        getrandom::fill(&mut token[8..SIGNED_BYTES]).map_err(io::Error::other)?;
        let mac = self.mac(share, generation, &token[..SIGNED_BYTES]).finalize().into_bytes();
        token[SIGNED_BYTES..].copy_from_slice(&mac);
        Ok(Unlock { token: Zeroizing::new(URL_SAFE_NO_PAD.encode(token)), expires_at })
    }

    /// Checks a token. Returns what identifies the visitor, or `None` if the token is not valid.
    pub(crate) fn check(
        &self,
        share: LinkId,
        generation: [u8; GENERATION_BYTES],
        token: &str,
        now: Timestamp,
    ) -> Option<[u8; VISITOR_BYTES]> {
        let mut bytes = [0; TOKEN_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(token, &mut bytes).ok()?;
        if length != TOKEN_BYTES {
            return None;
        }
        self.mac(share, generation, &bytes[..SIGNED_BYTES]).verify_slice(&bytes[SIGNED_BYTES..]).ok()?;
        let (end, rest) = bytes.split_first_chunk()?;
        let visitor = rest.first_chunk()?;
        (now.0 < u64::from_be_bytes(*end)).then_some(*visitor)
    }

    fn mac(&self, share: LinkId, generation: [u8; GENERATION_BYTES], signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.0).expect("HMAC takes keys of any length");
        mac.update(&share.0);
        mac.update(&generation);
        mac.update(signed);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: LinkId = LinkId([1; 16]);
    const GENERATION: [u8; 8] = [2; 8];
    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn tokens_are_bound_to_share_password_and_time() {
        let key = UnlockKey::new(Zeroizing::new([3; 32]));
        let unlock = key.issue(SHARE, GENERATION, NOW).expect("random bytes");
        let check =
            |key: &UnlockKey, share, generation, token: &str, now| key.check(share, generation, token, now);
        let visitor = check(&key, SHARE, GENERATION, &unlock.token, NOW);
        assert!(visitor.is_some());
        let last = Timestamp(unlock.expires_at.0 - 1);
        assert_eq!(unlock.expires_at.0 - NOW.0, 12 * 3600 * 1000);
        assert_eq!(check(&key, SHARE, GENERATION, &unlock.token, last), visitor);
        assert_eq!(check(&key, SHARE, GENERATION, &unlock.token, unlock.expires_at), None);
        assert_eq!(check(&key, LinkId([9; 16]), GENERATION, &unlock.token, NOW), None);
        assert_eq!(check(&key, SHARE, [9; 8], &unlock.token, NOW), None, "the password was changed");
        let other = UnlockKey::new(Zeroizing::new([4; 32]));
        assert_eq!(check(&other, SHARE, GENERATION, &unlock.token, NOW), None);
        for at in 0..unlock.token.len() {
            let mut forged: Vec<u8> = unlock.token.bytes().collect();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).expect("ASCII");
            assert_eq!(check(&key, SHARE, GENERATION, &forged, NOW), None, "character {at}");
        }
        for token in ["", "A", &unlock.token[1..], &format!("{}A", *unlock.token)] {
            assert_eq!(check(&key, SHARE, GENERATION, token, NOW), None);
        }
    }
}
