//! Authentication and authorization: credentials, AWS Signature Version 4, policies, and the directory of service accounts.
//!
//! A server makes one [`Authenticator`] per executor with its [`Credentials`] and passes it each request head as a
//! [`SignedRequest`]. The result is an [`Authentication`], or an [`AuthError`] with its S3 error code, status, message and
//! further XML elements.
//!
//! Signatures ([`Authenticator`]) and policies ([`policy`]) are pure. The [`directory`] has its own folder and thread. Requests
//! only use it through [`directory::ExecutorCredentials`]. The crate does not know buckets or routes: the planes decide which
//! action on which resource a request is, and which role a route requires. The caller compares the body with
//! [`PayloadDigest::Sha256`], or verifies its chunks with [`ChunkSignatures`].
//!
//! ```
//! use cairn_identity::{AuthError, Authenticator, RootCredential, SignedRequest};
//! use cairn_model::Timestamp;
//!
//! let authenticator = Authenticator::new(RootCredential::new("root", "a secret of some length"));
//! let request = SignedRequest { method: "GET", path: "/photos/1.jpg", query: None, headers: &[], bucket_in_host: None };
//! let refused = authenticator.authenticate(&request, Timestamp(1_369_353_600_000)).unwrap_err();
//! assert_eq!(refused, AuthError::NoAuthentication);
//! assert_eq!((refused.status(), refused.code()), (403, "AccessDenied"));
//! ```
#![forbid(unsafe_code)]

mod chunk_signatures;
mod credential;
pub mod directory;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod id;
mod last_use;
pub mod policy;
mod request;
mod role;
mod sigv4;
mod throttle;

pub use chunk_signatures::{ChunkSignatureMismatch, ChunkSignatures};
pub use credential::{
    AccountPrincipal, Credential, Credentials, Generation, Principal, RootCredential, SecretKey, Usability,
};
pub use request::{
    Authentication, ChunkedBody, PayloadDigest, SignatureKind, SignedForm, SignedFormVersion2, SignedRequest,
};
pub use role::{Role, Standing};
pub use sigv4::{
    AuthError, Authenticator, MalformedReason, PRESIGNED_LIFETIME_SECONDS_MAX, REQUEST_TIME_SKEW_SECONDS_MAX,
    SIGNED_HEADERS_MAX, SignatureMismatch, UnsupportedSigning,
};
pub use throttle::{CredentialThrottle, DelayedResponse, FailedCredential, RootAttempts};
