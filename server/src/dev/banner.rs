//! The banner of `serve --dev`: addresses, credentials, and client commands to paste into a shell.
//!
//! The commands need no files but those that they create in a temporary folder, and can be pasted again after a restart.
//!
//! Its client settings match what the server implements: path-style addressing, and in the mode `strict` checksums only when
//! required, because it does not implement trailing checksums.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use super::program;
use super::quote::{python_string, shell_word};
use cairn_s3::Compatibility;

use crate::addresses::Addresses;
use crate::config::{Key, Settings, keys};

/// The values that the banner shows.
struct Facts {
    /// The addresses of the planes, as URLs.
    data: String,
    management: String,
    /// The address at which shares are served, if not on the management plane only.
    console: Option<String>,
    access_key: String,
    secret_key: String,
    token: String,
    /// The command that runs this program.
    cairn: String,
    /// Whether clients need settings for what only the mode `extended` implements.
    is_strict: bool,
}

/// Returns the text of the banner.
pub(crate) fn write(settings: &Settings, addresses: Addresses) -> String {
    let auth = &settings.auth;
    let Addresses { data, management, console } = addresses;
    let facts = Facts {
        data: url(data, settings.server.tls.s3.is_some()),
        management: url(management, settings.server.tls.api.is_some()),
        console: console.map(|address| url(address, settings.server.tls.console.is_some())),
        access_key: auth.root_access_key.clone(),
        secret_key: auth.root_secret_key.expose().to_owned(),
        token: auth.management_system_token.expose().to_owned(),
        cairn: program::shell_command(),
        is_strict: settings.compatibility == Compatibility::Strict,
    };
    let trust = settings.dev_authority.as_deref().map_or_else(String::new, trust);
    let texts = [
        overview(settings, &facts),
        webhooks(settings),
        trust,
        command_lines(&facts),
        boto3(&facts),
        state(&facts),
    ];
    texts.concat()
}

/// Lists the restrictions of webhooks that `--dev` lifts and the configuration does not set.
fn webhooks(settings: &Settings) -> String {
    let is_relaxed = |key: &Key, is_allowed: bool| is_allowed && !settings.values.is_given(key);
    let allowed = [
        (is_relaxed(&keys::ALLOW_HTTP, settings.webhooks.allow_http), "webhooks.allow_http"),
        (
            is_relaxed(&keys::ALLOW_PRIVATE, settings.webhooks.allow_private_networks),
            "webhooks.allow_private_networks",
        ),
    ];
    let names: Vec<_> = allowed.iter().filter(|(is_relaxed, _)| *is_relaxed).map(|(_, name)| *name).collect();
    if names.is_empty() {
        return String::new();
    }
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!(
        "\nFor development, {} {verb} on: webhooks may be sent to programs on this machine.\n",
        names.join(" and ")
    )
}

fn url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Returns how to make clients trust the certificate.
fn trust(authority: &Path) -> String {
    // Clients may be started in any folder.
    let authority = std::path::absolute(authority).unwrap_or_else(|_| authority.to_owned());
    let authority = shell_word(&authority.to_string_lossy());
    format!(
        r"
The certificate is valid for localhost, 127.0.0.1 and ::1. Its authority was created for it and can sign no other. To trust it:

export AWS_CA_BUNDLE={authority}           # AWS CLI, boto3
export SSL_CERT_FILE={authority}           # programs in Go: s5cmd, rclone, restic, mc
export NODE_EXTRA_CA_CERTS={authority}     # Node.js
export CURL_CA_BUNDLE={authority}
export SERVICE_CA_CERTIFICATE={authority}  # cairn
"
    )
}

/// The addresses, the data folder and the credentials, unquoted.
fn overview(settings: &Settings, facts: &Facts) -> String {
    let Facts { data, management, access_key, secret_key, token, .. } = facts;
    let shares = facts.console.as_ref().map(|url| format!("\n  console     {url}")).unwrap_or_default();
    let mut secrets = String::new();
    if let Some(file) = &settings.dev_secrets {
        // Writing to a string does not fail.
        let _ = write!(secrets, "\n  secrets     {} (keep this file with the data)", file.display());
    }
    format!(
        r"
Cairn is ready. This is a development server, reachable from this machine only.

  S3          {data}
  management  {management}{shares}
  data        {folder}{secrets}

  access key        {access_key}
  secret key        {secret_key}
  management token  {token}
",
        folder = settings.server.data_dir.display(),
    )
}

/// The environment, and the commands of command-line clients.
fn command_lines(facts: &Facts) -> String {
    let Facts { data, management, cairn, .. } = facts;
    let (access_key, secret_key) = (shell_word(&facts.access_key), shell_word(&facts.secret_key));
    let token = shell_word(&facts.token);
    let (checksums, old_rclone, copies) = if facts.is_strict {
        (
            "export AWS_REQUEST_CHECKSUM_CALCULATION=when_required\n\
             export AWS_RESPONSE_CHECKSUM_VALIDATION=when_required\n",
            " (newer than 1.60: older versions always send an ACL, and ACLs are not implemented)",
            " RCLONE_CONFIG_CAIRN_COPY_CUTOFF=5G",
        )
    } else {
        ("", "", "")
    };
    // rclone 1.60 fails if AWS_CA_BUNDLE is set. Like other programs in Go, it reads SSL_CERT_FILE.
    let rclone = if data.starts_with("https:") { "env -u AWS_CA_BUNDLE rclone" } else { "rclone" };
    format!(
        r#"
Environment variables for the AWS CLI, s5cmd and SDKs:

export AWS_ACCESS_KEY_ID={access_key}
export AWS_SECRET_ACCESS_KEY={secret_key}
export AWS_REGION=us-east-1
export AWS_ENDPOINT_URL={data}
export S3_ENDPOINT_URL={data}
{checksums}
A bucket, and files to try the clients with, in a temporary folder:

export SERVICE_MANAGEMENT_TOKEN={token}
{cairn} bucket show demo --endpoint {management} > /dev/null 2>&1 || {cairn} bucket create demo --endpoint {management}
cairn_try=$(mktemp -d)
mkdir "$cairn_try/folder"
echo 'Hello from Cairn' > "$cairn_try/hello.txt"
cp "$cairn_try/hello.txt" "$cairn_try/folder/"

AWS CLI (its settings go to a separate file):

export AWS_CONFIG_FILE="$cairn_try/aws-config"
aws configure set default.s3.addressing_style path
aws s3 cp "$cairn_try/hello.txt" s3://demo/hello.txt
aws s3api list-objects-v2 --bucket demo

s5cmd:

s5cmd cp "$cairn_try/folder/" s3://demo/folder/
s5cmd cp 's3://demo/folder/*' "$cairn_try/copy/"

rclone{old_rclone}:

export RCLONE_CONFIG_CAIRN_TYPE=s3 RCLONE_CONFIG_CAIRN_PROVIDER=Other RCLONE_CONFIG_CAIRN_ENDPOINT={data}
export RCLONE_CONFIG_CAIRN_ACCESS_KEY_ID={access_key} RCLONE_CONFIG_CAIRN_SECRET_ACCESS_KEY={secret_key}
export RCLONE_CONFIG_CAIRN_REGION=us-east-1 RCLONE_CONFIG_CAIRN_FORCE_PATH_STYLE=true
export RCLONE_CONFIG_CAIRN_LIST_VERSION=2{copies}
{rclone} copy "$cairn_try/folder" cairn:demo/folder
"#
    )
}

/// A program that presigns URLs. The shell expands nothing in it, because the delimiter is quoted.
fn boto3(facts: &Facts) -> String {
    let data = &facts.data;
    let checksums = if facts.is_strict {
        r#",
                  request_checksum_calculation="when_required", response_checksum_validation="when_required""#
    } else {
        ""
    };
    let (access_key, secret_key) = (python_string(&facts.access_key), python_string(&facts.secret_key));
    format!(
        r#"
boto3, and a presigned URL for curl:

cat > "$cairn_try/presign.py" <<'END'
import sys
import boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url="{data}", region_name="us-east-1",
    aws_access_key_id={access_key}, aws_secret_access_key={secret_key},
    config=Config(signature_version="s3v4", s3={{"addressing_style": "path"}}{checksums}))
print(s3.generate_presigned_url("get_object", Params={{"Bucket": sys.argv[1], "Key": sys.argv[2]}}, ExpiresIn=600))
END
curl -o "$cairn_try/hello.copy" "$(python3 "$cairn_try/presign.py" demo hello.txt)"

Remove the temporary folder:

rm -r "$cairn_try"
"#
    )
}

fn state(facts: &Facts) -> String {
    let Facts { data, management, cairn, .. } = facts;
    let authorization = shell_word(&format!("Authorization: Bearer {}", facts.token));
    format!(
        r"
The settings of another client (aws-cli, go, javascript, rclone, restic, …), and whether everything works:

{cairn} doctor boto3 --endpoint {data}

State of the service:

{cairn} status --endpoint {management}
curl -H {authorization} {management}/api/v1/system/info

"
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Environment, Layers, WebhookSettings};

    /// Visible ASCII with characters that are special in a shell or in Python.
    const SECRET_KEY: &str = r#"a'b"c$HOME`id`\!0123"#;
    const TOKEN: &str = r#"t'k"n$(id)\0123456789-0123456789-0123456789"#;

    fn settings() -> Settings {
        let environment: Environment = [
            ("SERVICE_CREDENTIAL_MASTER_KEY", "master-key-0123456789-0123456789-x"),
            ("SERVICE_ROOT_ACCESS_KEY", "ROOTKEY"),
            ("SERVICE_ROOT_SECRET_KEY", SECRET_KEY),
            ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", TOKEN),
        ]
        .into_iter()
        .collect();
        Settings::from_values(Layers::default().environment(&environment).finish().unwrap()).unwrap()
    }

    fn guide(settings: &Settings) -> String {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        write(
            settings,
            Addresses { data: address(7600), management: address(7601), console: Some(address(7602)) },
        )
    }

    /// Secrets were not quoted: a shell expanded parts of them, and a quote ended the program.
    #[test]
    fn pasted_commands_use_the_configured_secrets() {
        let text = guide(&settings());
        let exports: String = text
            .lines()
            .filter(|line| line.starts_with("export AWS_") && !line.contains("CONFIG_FILE"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let script = format!("{exports}printf %s \"$AWS_SECRET_ACCESS_KEY\"");
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), SECRET_KEY);
        assert!(text.contains(r#"aws_secret_access_key="a'b\"c$HOME`id`\\!0123","#), "{text}");
        assert!(text.contains(&format!("\nexport SERVICE_MANAGEMENT_TOKEN={}\n", shell_word(TOKEN))));
        assert!(text.contains(&shell_word(&format!("Authorization: Bearer {TOKEN}"))));
        assert!(text.contains("\n  console     http://127.0.0.1:7602\n"), "{text}");
    }

    /// Settings for checksums were printed in the mode that takes every client at its defaults.
    #[test]
    fn only_the_strict_mode_has_settings_for_what_it_does_not_implement() {
        let strict = guide(&settings());
        let extended = guide(&Settings { compatibility: Compatibility::Extended, ..settings() });
        for setting in ["WHEN_REQUIRED", "COPY_CUTOFF", "ACL"] {
            assert!(strict.to_uppercase().contains(setting), "{setting}: {strict}");
            assert!(!extended.to_uppercase().contains(setting), "{setting}: {extended}");
        }
        assert!(strict.contains(" doctor boto3 --endpoint http://127.0.0.1:7600\n"), "{strict}");
    }

    #[test]
    fn relaxed_rules_for_webhooks_are_stated_unless_configured() {
        assert!(!guide(&settings()).contains("webhooks.allow"));
        let relaxed = Layers::default()
            .environment(&[("SERVICE_WEBHOOKS_ALLOW_HTTP", "true")].into_iter().collect())
            .default_value(&keys::ALLOW_PRIVATE, "true");
        let values = relaxed.finish().unwrap();
        let text = webhooks(&Settings {
            webhooks: WebhookSettings {
                allow_http: true,
                allow_private_networks: true,
                ..settings().webhooks
            },
            values,
            ..settings()
        });
        assert!(text.contains("webhooks.allow_private_networks is on"), "{text}");
        assert!(!text.contains("allow_http"), "{text}");
    }

    #[test]
    fn the_secrets_file_is_shown_only_if_secrets_come_from_it() {
        let settings = settings();
        assert!(!guide(&settings).contains("secrets  "));
        let settings = Settings { dev_secrets: Some(PathBuf::from("/data/dev-secrets.toml")), ..settings };
        assert!(
            guide(&settings)
                .contains("\n  secrets     /data/dev-secrets.toml (keep this file with the data)\n")
        );
    }
}
