//! Cross-origin resource sharing: which pages of other origins a browser lets read a bucket's answers.
//!
//! Source: "Using cross-origin resource sharing (CORS)" (AWS); the Fetch Standard, "CORS protocol"; RFC 6454. Without rules no
//! page is let in. Rules never grant access to data: they only tell browsers what to hand on of what the signature allowed.

pub(crate) mod answers;
pub(crate) mod configuration;
mod origin;
pub(crate) mod rules;
