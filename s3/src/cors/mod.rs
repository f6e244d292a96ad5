//! Cross-origin resource sharing (CORS): which web pages may read a bucket's responses.
//!
//! Source: "Using cross-origin resource sharing (CORS)" (AWS); the Fetch Standard, "CORS protocol"; RFC 6454. Without
//! rules no page of another origin may. Rules never grant access to data: they only tell browsers which responses to
//! pass to a page.

pub(crate) mod configuration;
mod origin;
pub(crate) mod responses;
pub(crate) mod rules;
