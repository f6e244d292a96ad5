//! Validates request ids that clients send.
//!
//! The network layer generates an id for every request. Clients of the management plane may replace it with their own
//! (specification, "Request ids"). As these ids are written to logs and headers, only harmless ones are accepted.

/// Longest accepted request id, in bytes. A UUID has 36 bytes, and common trace headers have up to about 100.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

/// Returns the id that a client sent if it sent one only, which has 1 to [`REQUEST_ID_BYTES_MAX`] bytes of visible ASCII.
///
/// Otherwise returns `None`, and the request keeps its generated id. An invalid id is not a reason to refuse a request.
#[must_use]
pub fn client_request_id<'h>(mut sent: impl Iterator<Item = &'h [u8]>) -> Option<&'h str> {
    let value = sent.next().filter(|_| sent.next().is_none())?;
    let is_harmless =
        (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
    if is_harmless { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_client_ids_are_accepted() {
        let longest = "x".repeat(REQUEST_ID_BYTES_MAX);
        for fine in ["a", "018f3c5e-7b1a-7cc3-98c4-dc0c0c07398f", "Root=1-67891233-abcdef012345", &longest] {
            assert_eq!(client_request_id([fine.as_bytes()].into_iter()), Some(fine));
            assert_eq!(
                client_request_id([fine.as_bytes(); 2].into_iter()),
                None,
                "nobody knows which counts"
            );
        }
        let too_long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        for bad in ["", "a b", "a\tb", "a\r\nset-cookie: x", "\u{7f}", "caf\u{e9}", &too_long] {
            assert!(client_request_id([bad.as_bytes()].into_iter()).is_none(), "{bad:?}");
        }
    }
}
