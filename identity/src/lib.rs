//! Who is asking, and what they may do: the root credential and the directory of service accounts, AWS Signature Version 4 in
//! headers and in presigned URLs, and policies.
//!
//! A server makes one [`Authenticator`] per executor over its [`Credentials`], hands it each request head as a
//! [`SignedRequest`], and gets back either an [`Authentication`] or an [`AuthError`] that already knows the S3
//! error code, status, message and extra XML elements.
//!
//! Signatures ([`Authenticator`]) and policies ([`policy`]) are pure. The [`directory`] has a folder and a thread of its own;
//! a request meets it through [`directory::ExecutorCredentials`] alone. The crate knows no bucket and no route: which action
//! on which resource a request is, and which role a route takes, is said by the planes. Hashing the body against
//! [`PayloadDigest::Sha256`] is the caller's part of the proof.
//!
//! ```
//! use cairn_identity::{AuthError, Authenticator, RootCredential, SignedRequest};
//! use cairn_model::Timestamp;
//!
//! let authenticator = Authenticator::new(RootCredential::new("root", "a secret of some length"));
//! let request = SignedRequest { method: "GET", path: "/photos/1.jpg", query: None, headers: &[] };
//! let refused = authenticator.authenticate(&request, Timestamp(1_369_353_600_000)).unwrap_err();
//! assert_eq!(refused, AuthError::NoAuthentication);
//! assert_eq!((refused.status(), refused.code()), (403, "AccessDenied"));
//! ```
#![forbid(unsafe_code)]

mod credential;
pub mod directory;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod policy;
mod request;
mod role;
mod sigv4;

pub use credential::{AccountPrincipal, Credential, Credentials, Principal, RootCredential};
pub use request::{Authentication, PayloadDigest, SignatureKind, SignedRequest};
pub use role::Role;
pub use sigv4::{
    AuthError, Authenticator, MalformedReason, PRESIGNED_LIFETIME_SECONDS_MAX, REQUEST_TIME_SKEW_SECONDS_MAX,
    SIGNED_HEADERS_MAX, SignatureMismatch, UnsupportedSigning,
};
