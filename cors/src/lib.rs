//! CORS rules of buckets: validation, encoding, and matching of requests.
//!
//! Both planes change the rules of a bucket, and the data plane applies them. This crate knows neither XML nor the JSON
//! of the management plane: each plane reads its own document into [`Rule`]s, and describes a [`CorsError`] in its own
//! words. Rules are pure values; the engine stores them as the bytes of [`Rules::encode`].
//!
//! Source: API Reference, PutBucketCors; "Using cross-origin resource sharing (CORS)" (AWS); the Fetch Standard, "CORS
//! protocol"; RFC 6454.
#![forbid(unsafe_code)]

mod checks;
mod origin;
mod rule;
mod rules;

pub use checks::{
    CONFIGURATION_BYTES_MAX, CorsError, HeaderList, ID_CHARACTERS_MAX, METHODS, Problem, RULES_MAX,
};
pub use origin::OriginMatching;
pub use rule::Rule;
pub use rules::{Admission, CrossOrigin, Mismatch, Rules};
