//! (interface sketch; the crate's author replaces this file)
#![forbid(unsafe_code)]
use cairn_model::Timestamp;
use std::sync::Arc;

/// What a signature covers, borrowed from the request as it came.
pub struct SignedRequest<'a> { pub method: &'a str, /// raw path, raw query (no `?`)
    pub path: &'a str, pub query: Option<&'a str>, /// lower-case names, trimmed values, order kept
    pub headers: &'a [(&'a str, &'a [u8])] }
/// Who signed.
#[derive(Clone, Debug, PartialEq, Eq)] pub enum Principal { Root }
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum PayloadDigest { Unsigned, Sha256([u8; 32]) }
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum SignatureKind { Header, Presigned }
#[derive(Clone, Debug)] pub struct Authentication { pub principal: Principal, pub access_key: Arc<str>, pub payload: PayloadDigest, pub kind: SignatureKind, /* signed header names etc. as s3 needs */ }
/// Each variant carries what its S3 error needs (code, message, canonical request...).
#[derive(Debug)] pub enum AuthError { /* ... */ }
impl AuthError { pub fn code(&self) -> &'static str { todo!() } pub fn status(&self) -> u16 { todo!() } pub fn message(&self) -> String { todo!() } }
/// Finds the secret of an access key.
pub trait Credentials { fn find(&self, access_key: &str) -> Option<Credential>; }
pub struct Credential { pub secret_key: Arc<str>, pub principal: Principal, /// changes whenever secret or state changes: invalidates cached signing keys
    pub generation: u64, pub allowed_on_data_plane: bool }
/// One per executor: keeps a bounded cache of signing keys.
pub struct Authenticator<C> { _c: C }
impl<C: Credentials> Authenticator<C> { pub fn new(_credentials: C) -> Self { todo!() } pub fn authenticate(&self, _request: &SignedRequest<'_>, _now: Timestamp) -> Result<Authentication, AuthError> { todo!() } }
