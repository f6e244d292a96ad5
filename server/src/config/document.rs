//! `docs/configuration.md`, written from the table of keys.

use std::fmt::Write;

use super::key::{Availability, Key, Kind};
use super::keys::ALL_KEYS;
use super::value::expected;

const INTRODUCTION: &str = "\
# Configuration

This page is generated from the table of keys in `server/src/config/keys.rs`; a test keeps the two equal.

Keys are read from a TOML file, named by `--config` or `SERVICE_CONFIG`, and from the environment. A variable goes before
the file, the file before the default. Every key can be set by `SERVICE_<SECTION>_<KEY>`; some have a shorter variable, shown
in its place. An empty variable counts as not set. Names that are not listed here, in the file or beginning with `SERVICE_` in the
environment, end the start with an error that names them. `SERVICE_MANAGEMENT_TOKEN` and `SERVICE_CA_CERTIFICATE` are read by the command-line client only.

A secret or the root access key can stand in a file that a variable with `_FILE` at its end names, as
`SERVICE_ROOT_SECRET_KEY_FILE=/run/secrets/root-secret-key`: its content, less one newline at the end, is the value. The file is
a regular one of at most 4096 bytes of UTF-8 that does not end with a carriage return; both variables at once, or two files for one key, end the start. It is read once, at
the start. In a container the secrets of the engine are such files. Under systemd, `%d` is the folder of the service's credentials:

```ini
[Service]
LoadCredential=master-key:/etc/cairn/credentials/master-key
Environment=SERVICE_CREDENTIAL_MASTER_KEY_FILE=%d/master-key
```

Outside `/run`, such a file, or a TOML file with secrets in it, that every user of the host can read or write brings a warning in the log.

Secrets are shown as `<redacted>` wherever the configuration is shown, and no error repeats a value.

`cairn serve` needs the four secrets that are marked required. `cairn serve --dev` makes them on first use, keeps them in
`dev-secrets.toml` (mode 0600) in the data folder, and listens on loopback addresses only.
";

/// The text of `docs/configuration.md`.
#[must_use]
pub fn configuration_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut section = "";
    for key in ALL_KEYS {
        let (own, _) = key.name.rsplit_once('.').unwrap_or_default();
        if own != section {
            section = own;
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "\n## `[{section}]`\n\n| key | variable | value | default | effect |\n|---|---|---|---|---|\n"
            );
        }
        let _ = writeln!(text, "{}", row(key));
    }
    text
}

fn row(key: &Key) -> String {
    let (_, name) = key.name.rsplit_once('.').unwrap_or_default();
    let default = match key.default {
        Some("") => "none".to_owned(),
        Some(text) => format!("`{text}`"),
        None => "not set".to_owned(),
    };
    let value = match key.kind {
        Kind::Secret => "secret".to_owned(),
        Kind::LogFilter => "log filter".to_owned(),
        kind => expected(kind).replace("<host>:<port>", "`<host>:<port>`"),
    };
    let note = match key.availability {
        Availability::Built => "",
        Availability::NotBuilt => {
            " *The feature is not in this build; the value is checked and has no effect.*"
        }
    };
    format!("| `{name}` | `{}` | {value} | {default} | {}{note} |", key.variable(), key.doc)
}
