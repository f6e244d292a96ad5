//! Sign-in for people: OpenID Connect with the authorization code and PKCE.
//!
//! [`SignIns`] begins a sign-in, and finishes it when the provider has sent the browser back. Every request to the provider
//! runs on a thread of this crate. The modules are layers: `limits`, `text`, `error`, `settings`, `token`, `person`, `pending`,
//! `logouts`, `tasks`, `provider`, `sign_ins`. See `docs/internals/sign-in.md`.
#![forbid(unsafe_code)]

mod error;
mod limits;
mod logouts;
mod pending;
mod person;
mod provider;
mod settings;
mod sign_ins;
mod tasks;
mod text;
mod token;

pub use error::SignInError;
pub use limits::{LOGOUT_TOKEN_BYTES_MAX, SIGN_IN_TIME_MAX};
pub use person::Person;
pub use settings::{OpenIdSettings, RoleValues};
pub use sign_ins::{Begun, Finished, ProviderAnswer, SignIns};
pub use token::Logout;
