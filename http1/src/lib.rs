//! HTTP/1.1 as pure functions: request and response heads, ranges, preconditions, dates, percent-encoding and queries.
//!
//! Nothing here owns a socket or a clock, so everything can be tested and fuzzed on bytes alone. Parsing is strict: a
//! message that two servers could understand differently is refused ([`HeadError`]).
#![forbid(unsafe_code)]

pub mod chunked;
pub mod conditional;
pub mod date;
pub mod disposition;
pub mod forwarded;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod head;
pub mod percent;
pub mod query;
pub mod range;
pub mod response;
mod syntax;

pub use cairn_model::iso8601::iso8601_millis;
pub use chunked::{ChunkedDecoder, ChunkedError};
pub use conditional::{
    Comparison, Conditions, Validators, Verdict, entity_tag_matches, entity_tags, if_range_matches,
};
pub use date::{HttpDate, http_date, parse_http_date, parse_rfc3339_millis};
pub use disposition::{attachment, file_name, inline, is_deceptive};
pub use forwarded::{ForwardedHeader, forwarded_addresses};
pub use head::{BodyFraming, HeadError, HeadLimits, HeadParser, RequestHead, parse_head};
pub use http::{Method, StatusCode};
pub use percent::{DecodeError, decode, encode_path, encode_strict};
pub use query::{QueryPairs, query_pairs};
pub use range::{RangeOutcome, ResolvedRange, resolve_range, unsatisfied_content_range};
pub use response::{BodyLength, ConnectionOption, ResponseHead};
pub use syntax::{is_field_value, is_token, trim_ows};
