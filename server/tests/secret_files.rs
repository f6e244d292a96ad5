//! Secrets in files: what counts as the value. No message repeats any of it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cairn_server::config::{Environment, Settings};
use cairn_server::{Mode, ServeOptions, load_settings};
use tempfile::TempDir;

const CANARY: &str = "canary-canary-canary-canary-canary-0";
const REQUIRED: [(&str, &str); 4] = [
    ("SERVICE_CREDENTIAL_MASTER_KEY", "master-key-0123456789-0123456789-x"),
    ("SERVICE_ROOT_ACCESS_KEY", "ROOTKEY"),
    ("SERVICE_ROOT_SECRET_KEY", "root-secret-key-0123456789-012345"),
    ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", "system-token-0123456789-0123456789"),
];

fn load(variables: &[(String, String)]) -> Result<Settings, String> {
    let options = ServeOptions {
        mode: Mode::Production,
        config: None,
        data_dir: None,
        dev_tls: false,
        console_dir: None,
    };
    let environment: Environment = variables.iter().cloned().collect();
    load_settings(&options, &environment).map_err(|error| error.to_string())
}

fn file(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The required variables, with the root secret key in a file.
fn root_secret_in(path: &Path) -> Vec<(String, String)> {
    let others = REQUIRED.iter().filter(|(name, _)| *name != "SERVICE_ROOT_SECRET_KEY");
    let others = others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let named = ("SERVICE_ROOT_SECRET_KEY_FILE".to_owned(), path.to_str().unwrap().to_owned());
    others.chain([named]).collect()
}

#[test]
fn every_required_value_can_come_from_a_file() {
    let folder = TempDir::new().unwrap();
    let variables: Vec<(String, String)> = REQUIRED
        .iter()
        .map(|(name, value)| {
            let path = file(&folder, name, format!("{value}\n").as_bytes());
            (format!("{name}_FILE"), path.to_str().unwrap().to_owned())
        })
        .collect();
    let settings = load(&variables).unwrap();
    assert_eq!(settings.auth.credential_master_key.expose(), REQUIRED[0].1);
    assert_eq!(settings.auth.root_access_key, "ROOTKEY");
    assert_eq!(settings.auth.management_system_token.expose(), REQUIRED[3].1);
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

/// A master key with one byte more or less does not open the store, so exactly one newline is removed.
#[test]
fn only_one_trailing_newline_is_removed() {
    let folder = TempDir::new().unwrap();
    for (content, value) in [("a-b-c-d-e-f-g\n", "a-b-c-d-e-f-g"), ("a-b-c-d-e-f-g", "a-b-c-d-e-f-g")] {
        let settings = load(&root_secret_in(&file(&folder, "secret", content.as_bytes()))).unwrap();
        assert_eq!(settings.auth.root_secret_key.expose(), value);
    }
    let refusal = load(&root_secret_in(&file(&folder, "secret", b"a-b-c-d-e-f-g\n\n"))).unwrap_err();
    assert!(
        refusal.contains("the content of SERVICE_ROOT_SECRET_KEY_FILE must be visible ASCII"),
        "{refusal}"
    );
}

/// A store created with the invisible byte in its master key could not be opened with the key as displayed.
#[test]
fn a_trailing_carriage_return_is_refused() {
    let folder = TempDir::new().unwrap();
    for end in ["\r\n", "\r"] {
        let path = file(&folder, "key", format!("{CANARY}{end}").as_bytes());
        let mut variables = root_secret_in(&path);
        variables.retain(|(name, _)| name != "SERVICE_CREDENTIAL_MASTER_KEY" && !name.ends_with("_FILE"));
        variables
            .push(("SERVICE_ROOT_SECRET_KEY".to_owned(), "root-secret-key-0123456789-012345".to_owned()));
        variables.push(("SERVICE_CREDENTIAL_MASTER_KEY_FILE".to_owned(), path.to_str().unwrap().to_owned()));
        let refusal = load(&variables).unwrap_err();
        assert!(refusal.contains("carriage return") && !refusal.contains(CANARY), "{refusal}");
    }
}

#[test]
fn a_readable_configuration_file_with_secrets_brings_a_warning() {
    let folder = TempDir::new().unwrap();
    let warnings = |text: &str, mode| {
        let path = file(&folder, "cairn.toml", text.as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let options = ServeOptions {
            mode: Mode::Production,
            config: Some(path),
            data_dir: None,
            dev_tls: false,
            console_dir: None,
        };
        let environment: Environment =
            REQUIRED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load_settings(&options, &environment).unwrap().warnings
    };
    let secret = "[observability]\nmetrics_scrape_token = \"scrape-token-0123456789-0123456789\"\n";
    assert!(warnings(secret, 0o644).iter().any(|warning| warning.contains("cairn.toml can be read")));
    assert_eq!(warnings(secret, 0o640), Vec::<String>::new());
    assert_eq!(warnings("[server]\nexecutors = 1\n", 0o644), Vec::<String>::new());
}

#[test]
fn a_value_set_twice_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "secret", CANARY.as_bytes());
    for (other, value) in [
        ("SERVICE_ROOT_SECRET_KEY", CANARY),
        ("SERVICE_AUTH_ROOT_SECRET_KEY", "another-one-01234"),
        ("SERVICE_AUTH_ROOT_SECRET_KEY_FILE", path.to_str().unwrap()),
    ] {
        let mut variables = root_secret_in(&path);
        variables.push((other.to_owned(), value.to_owned()));
        let refusal = load(&variables).unwrap_err();
        assert!(refusal.contains("set the same key"), "{refusal}");
        assert!(refusal.contains(other) && refusal.contains("SERVICE_ROOT_SECRET_KEY_FILE"), "{refusal}");
        assert!(!refusal.contains(CANARY), "{refusal}");
    }
    let mut variables = root_secret_in(&path);
    variables.push(("SERVICE_ROOT_SECRET_KEY".to_owned(), String::new()));
    assert!(load(&variables).is_ok(), "an empty variable is none");
}

#[test]
fn an_unusable_secret_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut not_text = CANARY.as_bytes().to_vec();
    not_text.push(0xff);
    let cases = [
        (folder.path().join("missing"), "cannot be read: No such file"),
        (folder.path().to_path_buf(), "is not a regular file"),
        (PathBuf::from("/dev/zero"), "is not a regular file"),
        (file(&folder, "empty", b""), "is empty"),
        (file(&folder, "newline", b"\n"), "is empty"),
        (file(&folder, "large", CANARY.repeat(200).as_bytes()), "has more than 4096 bytes"),
        (file(&folder, "binary", &not_text), "is not UTF-8"),
    ];
    for (path, reason) in cases {
        let refusal = load(&root_secret_in(&path)).unwrap_err();
        let expected = format!("SERVICE_ROOT_SECRET_KEY_FILE: the file {} {reason}", path.display());
        assert!(refusal.starts_with(&expected), "{refusal}");
        assert!(!refusal.contains("canary"), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "that it is missing is not said on top: {refusal}");
    }
    let refusal = load(&root_secret_in(&file(&folder, "short", b"canary\n"))).unwrap_err();
    assert!(
        refusal.contains("the content of SERVICE_ROOT_SECRET_KEY_FILE must be 8 to 1024 bytes"),
        "{refusal}"
    );
    assert!(!refusal.contains("canary"), "{refusal}");
}

#[test]
fn a_readable_secret_file_brings_a_warning() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "secret", CANARY.as_bytes());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let warnings = load(&root_secret_in(&path)).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("SERVICE_ROOT_SECRET_KEY_FILE") && warnings[0].contains("chmod o-rw"));
}

#[test]
fn only_secrets_can_come_from_a_file() {
    let variable = ("SERVICE_S3_BIND_FILE".to_owned(), "/nonexistent".to_owned());
    let refusal = load(&[variable]).unwrap_err();
    assert!(refusal.contains("SERVICE_S3_BIND_FILE is not a configuration key"), "{refusal}");
}

/// The variable is only ignored with a warning, because it begins with no section's name. The error of the missing secret
/// names it too.
#[test]
fn a_misspelt_secret_is_named_when_the_secret_is_missing() {
    let misspelt = ("SERVICE_ROOT_SECRT_KEY_FILE".to_owned(), "/nonexistent".to_owned());
    let none = ("SERVICE_ROOT_SECRET_KEY".to_owned(), String::new());
    let refusal = load(&[misspelt, none]).unwrap_err();
    assert!(refusal.contains("did you mean SERVICE_ROOT_SECRET_KEY_FILE?"), "{refusal}");
}
