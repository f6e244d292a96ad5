//! Request ids that clients bring along.
//!
//! Every request has an id of the network layer's making. A client of the management plane may put its own in its place
//! (specification, "Request ids"); what it may look like is decided here, since it will be written to logs and headers.

/// Longest request id taken over, in bytes: a UUID has 36, trace headers in use elsewhere up to about 100.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

/// The id that a client sent, if it is harmless: 1 to [`REQUEST_ID_BYTES_MAX`] bytes of visible ASCII.
///
/// What does not qualify gives `None` and the request keeps its own id: an id is no reason to refuse a request.
#[must_use]
pub fn client_request_id(value: &[u8]) -> Option<&str> {
    let is_harmless =
        (1..=REQUEST_ID_BYTES_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
    if is_harmless { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_s_id_is_taken_over_only_when_it_is_harmless() {
        let longest = "x".repeat(REQUEST_ID_BYTES_MAX);
        for fine in ["a", "018f3c5e-7b1a-7cc3-98c4-dc0c0c07398f", "Root=1-67891233-abcdef012345", &longest] {
            assert_eq!(client_request_id(fine.as_bytes()), Some(fine));
        }
        let too_long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        for bad in ["", "a b", "a\tb", "a\r\nset-cookie: x", "\u{7f}", "caf\u{e9}", &too_long] {
            assert!(client_request_id(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
