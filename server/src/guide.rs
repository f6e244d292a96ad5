//! What `serve --dev` prints: addresses, credentials, and client lines that can be pasted as they are.
//!
//! The settings in them are those of the strict surface: path-style addressing, checksums only when required, since
//! trailing checksums are not implemented.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use crate::config::Settings;
use crate::quote::{python_string, shell_word};

/// What the guide names, in the forms that its places need.
struct Facts {
    /// Where the planes are, as URLs.
    data: String,
    management: String,
    access_key: String,
    secret_key: String,
    token: String,
}

/// The text.
pub(crate) fn write(settings: &Settings, data: SocketAddr, management: SocketAddr) -> String {
    let auth = &settings.auth;
    let facts = Facts {
        data: url(data, settings.server.tls.s3.is_some()),
        management: url(management, settings.server.tls.api.is_some()),
        access_key: auth.root_access_key.clone(),
        secret_key: auth.root_secret_key.expose().to_owned(),
        token: auth.management_system_token.expose().to_owned(),
    };
    let trust = settings.dev_authority.as_deref().map_or_else(String::new, trust);
    [overview(settings, &facts), trust, command_lines(&facts), boto3(&facts), state(&facts)].concat()
}

fn url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// How clients come to trust the certificate.
fn trust(authority: &Path) -> String {
    // A client reads it from wherever it is started.
    let authority = std::path::absolute(authority).unwrap_or_else(|_| authority.to_owned());
    let authority = shell_word(&authority.to_string_lossy());
    format!(
        r"
The certificate is for localhost, 127.0.0.1 and ::1. Its authority was made for it alone and can sign no other. To trust it:

export AWS_CA_BUNDLE={authority}           # AWS CLI, boto3
export SSL_CERT_FILE={authority}           # programs in Go: s5cmd, rclone, restic, mc
export NODE_EXTRA_CA_CERTS={authority}     # Node.js
export CURL_CA_BUNDLE={authority}
export SERVICE_CA_CERTIFICATE={authority}  # cairn
"
    )
}

/// Where things are, and the credentials as they are.
fn overview(settings: &Settings, facts: &Facts) -> String {
    let Facts { data, management, access_key, secret_key, token } = facts;
    let mut secrets = String::new();
    if let Some(file) = &settings.dev_secrets {
        // Writing to a string does not fail.
        let _ = write!(secrets, "\n  secrets     {} (keep it with the data)", file.display());
    }
    format!(
        r"
Cairn is ready, for trying out on this machine only.

  S3          {data}
  management  {management}
  data        {folder}{secrets}

  access key        {access_key}
  secret key        {secret_key}
  management token  {token}
",
        folder = settings.server.data_dir.display(),
    )
}

/// The environment and the clients that are command lines.
fn command_lines(facts: &Facts) -> String {
    let data = &facts.data;
    let (access_key, secret_key) = (shell_word(&facts.access_key), shell_word(&facts.secret_key));
    format!(
        r#"
Environment for the AWS CLI, s5cmd and the SDKs:

export AWS_ACCESS_KEY_ID={access_key}
export AWS_SECRET_ACCESS_KEY={secret_key}
export AWS_REGION=us-east-1
export AWS_ENDPOINT_URL={data}
export S3_ENDPOINT_URL={data}
export AWS_REQUEST_CHECKSUM_CALCULATION=when_required
export AWS_RESPONSE_CHECKSUM_VALIDATION=when_required

AWS CLI (the setting goes to a file of its own):

export AWS_CONFIG_FILE="$PWD/cairn-aws-config"
aws configure set default.s3.addressing_style path
aws s3 mb s3://demo
aws s3 cp README.md s3://demo/README.md
aws s3api list-objects-v2 --bucket demo

s5cmd:

s5cmd cp ./folder/ s3://demo/folder/
s5cmd cp 's3://demo/folder/*' ./copy/

rclone (1.60 and older always send an ACL, and ACLs are not implemented: use a later one):

export RCLONE_CONFIG_CAIRN_TYPE=s3 RCLONE_CONFIG_CAIRN_PROVIDER=Other RCLONE_CONFIG_CAIRN_ENDPOINT={data}
export RCLONE_CONFIG_CAIRN_ACCESS_KEY_ID={access_key} RCLONE_CONFIG_CAIRN_SECRET_ACCESS_KEY={secret_key}
export RCLONE_CONFIG_CAIRN_REGION=us-east-1 RCLONE_CONFIG_CAIRN_FORCE_PATH_STYLE=true
export RCLONE_CONFIG_CAIRN_LIST_VERSION=2 RCLONE_CONFIG_CAIRN_COPY_CUTOFF=5G
rclone copy ./folder cairn:demo/folder
"#
    )
}

/// A program for presigned links. The shell takes nothing in it for its own: the delimiter is quoted.
fn boto3(facts: &Facts) -> String {
    let data = &facts.data;
    let (access_key, secret_key) = (python_string(&facts.access_key), python_string(&facts.secret_key));
    format!(
        r#"
boto3, and a link that plain curl downloads:

cat > cairn_presign.py <<'END'
import sys
import boto3
from botocore.config import Config
s3 = boto3.client("s3", endpoint_url="{data}", region_name="us-east-1",
    aws_access_key_id={access_key}, aws_secret_access_key={secret_key},
    config=Config(signature_version="s3v4", s3={{"addressing_style": "path"}},
                  request_checksum_calculation="when_required", response_checksum_validation="when_required"))
print(s3.generate_presigned_url("get_object", Params={{"Bucket": sys.argv[1], "Key": sys.argv[2]}}, ExpiresIn=600))
END
curl -o README.copy "$(python3 cairn_presign.py demo README.md)"
"#
    )
}

fn state(facts: &Facts) -> String {
    let (management, token) = (&facts.management, shell_word(&facts.token));
    let authorization = shell_word(&format!("Authorization: Bearer {}", facts.token));
    format!(
        r"
State of the service:

SERVICE_MANAGEMENT_TOKEN={token} cairn status --endpoint {management}
curl -H {authorization} {management}/api/v1/system/info

"
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Environment, Layers};

    /// Visible ASCII that means something to a shell and to Python.
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
        write(settings, address(7600), address(7601))
    }

    /// Secrets stood in the lines as they are, so that a shell expanded a part of them, and a quote ended the program.
    #[test]
    fn what_is_pasted_sends_the_secret_that_was_configured() {
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
        assert!(text.contains(&format!("\nSERVICE_MANAGEMENT_TOKEN={} cairn status", shell_word(TOKEN))));
        assert!(text.contains(&shell_word(&format!("Authorization: Bearer {TOKEN}"))));
    }

    #[test]
    fn a_file_of_secrets_is_named_only_when_secrets_come_from_it() {
        let settings = settings();
        assert!(!guide(&settings).contains("secrets  "));
        let settings = Settings { dev_secrets: Some(PathBuf::from("/data/dev-secrets.toml")), ..settings };
        assert!(
            guide(&settings).contains("\n  secrets     /data/dev-secrets.toml (keep it with the data)\n")
        );
    }
}
