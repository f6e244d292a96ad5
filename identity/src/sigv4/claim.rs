//! A request's claim about its signature.

use super::date::AmzDate;
use super::payload::Payload;
use super::scope::{Scope, SignedHeaders};
use crate::request::SignatureKind;

/// The signature of a request, from its headers or its query: well-formed, but not verified.
pub(super) struct Claim<'a> {
    pub(super) kind: SignatureKind,
    pub(super) scope: Scope<'a>,
    pub(super) signed_headers: SignedHeaders<'a>,
    /// As sent: not necessarily hexadecimal digits.
    pub(super) signature: &'a [u8],
    pub(super) date: AmzDate,
    pub(super) payload: Payload<'a>,
}
