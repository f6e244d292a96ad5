//! Cross-origin resource sharing (CORS): which web pages may read a bucket's responses.
//!
//! Source: "Using cross-origin resource sharing (CORS)" (AWS); the Fetch Standard, "CORS protocol"; RFC 6454. Without
//! rules no page of another origin may. Rules never grant access to data: they only tell browsers which responses to
//! pass to a page. What rules are is defined in `cairn_cors`, because the management plane changes them, too.

pub(crate) mod configuration;
pub(crate) mod responses;
