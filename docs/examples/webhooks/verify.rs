//! Checks the signature of a delivery.
//!
//! With the crates hmac 0.13, sha2 0.11 and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns whether a delivery is genuine and at most `tolerance` seconds older or newer than `now`, in seconds since 1970.
///
/// `header` returns the value of a header; `body` must be the bytes as received.
pub fn verify<'a>(
    secret: &str,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now: u64,
    tolerance: u64,
) -> bool {
    let (Some(id), Some(timestamp), Some(signatures)) =
        (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"))
    else {
        return false;
    };
    let Some(key) = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok()) else {
        return false;
    };
    if !timestamp.parse().is_ok_and(|sent: u64| sent.abs_diff(now) <= tolerance) {
        return false;
    }
    // While the secret is rotated, there are two signatures.
    signatures.split(' ').filter_map(|text| STANDARD.decode(text.strip_prefix("v1,")?).ok()).any(
        |signature| {
            let mut mac: Hmac<Sha256> = Hmac::new_from_slice(&key).expect("HMAC takes keys of any length");
            mac.update(format!("{id}.{timestamp}.").as_bytes());
            mac.update(body);
            // In constant time.
            mac.verify_slice(&signature).is_ok()
        },
    )
}
