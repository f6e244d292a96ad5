//! Configuration: one table of keys, read from a TOML file and from the environment, the environment first.
//!
//! Everything about a key stands in [`keys`]: parsing, ranges, unknown names, redaction and `docs/configuration.md`
//! all follow from that table. Every problem found is reported at once, by the name the user wrote and never with
//! the value, which may be a secret.

mod document;
mod key;
pub(crate) mod keys;
mod problem;
mod secret;
mod secret_file;
mod secret_rules;
mod settings;
mod sources;
mod tls;
mod value;

pub use document::configuration_document;
pub use key::{Availability, Key, Kind};
pub use keys::ALL_KEYS;
pub use problem::{ConfigError, Problem};
pub use secret::Secret;
pub use secret_rules::AuthSettings;
pub use settings::{AuditSettings, LogSettings, ServerSettings, Settings, StorageSettings};
pub use sources::{CONFIG_FILE_VARIABLE, Environment, Layers, MANAGEMENT_TOKEN_VARIABLE, Values};
pub use tls::{PairFiles, TlsSettings};
pub use value::BindAddress;
pub(crate) use value::bytes_text;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use value::{Value, expected, parse_text};
