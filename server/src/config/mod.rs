//! The configuration: one table of keys, read from the environment and from a TOML file. The environment overrides the file.
//!
//! [`keys`] defines everything about a key: parsing, ranges, unknown names, redaction and `docs/configuration.md` are derived
//! from that table. All problems are reported together, with the name that the user wrote and never with the value, which may
//! be a secret.

mod closest;
mod document;
mod effective;
mod key;
pub(crate) mod keys;
mod openid;
mod problem;
mod reader;
mod secret;
mod secret_file;
mod secret_rules;
mod settings;
mod sources;
mod tls;
mod value;

pub use closest::{EDITS_MAX, closest};
pub use document::configuration_document;
pub use effective::{EffectiveKey, Origin};
pub use key::{Key, Kind};
pub use keys::ALL_KEYS;
pub use problem::{ConfigError, Problem};
pub use secret::Secret;
pub use secret_rules::AuthSettings;
pub use settings::{
    AuditSettings, EventSettings, LifecycleSettings, ServerSettings, Settings, StorageSettings,
    WebhookSettings,
};
pub use sources::{CONFIG_FILE_VARIABLE, Environment, Layers, MANAGEMENT_TOKEN_VARIABLE, Values};
pub use tls::{PairFiles, TlsSettings};
pub use value::BindAddress;
pub(crate) use value::bytes_text;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use value::{Value, expected, parse_text};
