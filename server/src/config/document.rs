//! Generates `docs/configuration.md` from the table of keys.

use std::fmt::Write;

use super::key::{Key, Kind};
use super::keys::ALL_KEYS;
use super::value::expected;

const INTRODUCTION: &str = "\
# Configuration

This page is generated from the table of keys in `server/src/config/keys.rs`; a test keeps the two equal.

Keys are read from the environment and from a TOML file, which `--config` or `SERVICE_CONFIG` names. A variable
overrides the file; the file overrides the default. Every key can be set by `SERVICE_<SECTION>_<KEY>`; some keys have a
shorter variable, which is shown instead. An empty variable counts as not set. The server does not start if the file
contains a key, or the environment a variable that begins with `SERVICE_TLS_` or with `SERVICE_` and the name of a
section, that is not listed here; the error names it. Other unknown variables that begin with `SERVICE_` cause a
warning, because orchestrators set some: Consul and Swarm set `SERVICE_NAME` and `SERVICE_PORT`.
`SERVICE_MANAGEMENT_TOKEN`, `SERVICE_MANAGEMENT_ENDPOINT` and `SERVICE_CA_CERTIFICATE` are read by the command-line
client only.

A secret or the root access key can be stored in a file. A variable that ends with `_FILE` names it, for example
`SERVICE_ROOT_SECRET_KEY_FILE=/run/secrets/root-secret-key`. The value is the content of the file without one trailing
newline. The file must be a regular file of at most 4096 bytes of UTF-8 that does not end with a carriage return. It is
read once, at the start. The server does not start if both variables are set, or two files for one key. The secrets of a
container engine are such files. Under systemd, `%d` is the folder of the service's credentials:

```ini
[Service]
LoadCredential=master-key:/etc/cairn/credentials/master-key
Environment=SERVICE_CREDENTIAL_MASTER_KEY_FILE=%d/master-key
```

If every user of the host can read or write such a file, or a TOML file that contains secrets, the log has a warning.
Files in `/run` are exempt.

Outgoing requests with TLS (webhooks, OpenID providers, the command-line client) trust the certificate authorities of
the host: on Debian those of the package `ca-certificates`, in `/etc/ssl/certs/ca-certificates.crt`. The variable
`SSL_CERT_FILE` names a PEM file that replaces that file, for example with the authority of a company. `ca_file` below
and `SERVICE_CA_CERTIFICATE` replace it for one purpose. `cairn check` warns if there are no authorities.

Secrets are shown as `<redacted>` wherever the configuration is shown. No error repeats a value.

`cairn serve` needs the four secrets that are marked as required. `cairn serve --dev` creates them on first use, stores
them in `dev-secrets.toml` (mode 0600) in the data folder, and listens on loopback addresses only.
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
    format!("| `{name}` | `{}` | {value} | {default} | {} |", key.variable(), key.doc)
}
