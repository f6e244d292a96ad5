//! Configuration through the public API: precedence, unknown names, refusals. No message repeats a value.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_server::config::{
    ALL_KEYS, Environment, Kind, PairFiles, Secret, Settings, TlsSettings, configuration_document,
};
use cairn_server::{LoadError, Mode, ServeOptions, load_settings};

const MASTER_KEY: &str = "master-key-0123456789-0123456789-x";
const SECRET_KEY: &str = "root-secret-key-0123456789-012345";
const TOKEN: &str = "system-token-0123456789-0123456789";

/// The variables that production requires, and `more`.
fn production(more: &[(&str, &str)]) -> Environment {
    let required = [
        ("SERVICE_CREDENTIAL_MASTER_KEY", MASTER_KEY),
        ("SERVICE_ROOT_ACCESS_KEY", "ROOTKEY"),
        ("SERVICE_ROOT_SECRET_KEY", SECRET_KEY),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", TOKEN),
        ("PATH", "/usr/bin"),
    ];
    required.iter().chain(more).copied().collect()
}

fn options(mode: Mode) -> ServeOptions {
    ServeOptions { mode, config: None, data_dir: None, dev_tls: false, console_dir: None }
}

fn load(environment: &Environment) -> Result<Settings, String> {
    load_settings(&options(Mode::Production), environment).map_err(|error| error.to_string())
}

fn load_file(text: &str, environment: &Environment) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cairn.toml");
    std::fs::write(&path, text).unwrap();
    let options = ServeOptions { config: Some(path), ..options(Mode::Production) };
    load_settings(&options, environment).map_err(|error| error.to_string())
}

#[test]
fn the_defaults_keep_administration_on_the_loopback_address() {
    let settings = load(&production(&[])).unwrap();
    assert_eq!(settings.server.s3_bind.address.port(), 7600);
    assert_eq!(settings.server.api_bind.text, "127.0.0.1:7601");
    assert_eq!(settings.server.shutdown_grace_period.as_secs(), 30);
    assert!(settings.auth.root_s3_enabled);
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

#[test]
fn the_environment_overrides_the_file_and_options_override_both() {
    let file = "[server]\ns3_bind = \"127.0.0.1:1111\"\napi_bind = \"127.0.0.1:2222\"\ndata_dir = \"/file\"\n\
                [storage]\ncache_bytes = 1024\nreserve_bytes = \"64MiB\"\n[observability]\njson = true\n";
    let environment =
        production(&[("SERVICE_S3_BIND", "127.0.0.1:3333"), ("SERVICE_STORAGE_CACHE_BYTES", "2KiB")]);
    let settings = load_file(file, &environment).unwrap();
    assert_eq!(settings.server.s3_bind.address.port(), 3333);
    assert_eq!(settings.server.api_bind.address.port(), 2222);
    assert_eq!(settings.storage.cache_bytes, Some(2048));
    assert_eq!(settings.storage.reserve_bytes, 64 << 20);

    let environment = production(&[("SERVICE_DATA_DIR", "/environment")]);
    let options = ServeOptions { data_dir: Some(PathBuf::from("/option")), ..options(Mode::Production) };
    assert_eq!(load_settings(&options, &environment).unwrap().server.data_dir, Path::new("/option"));
}

#[test]
fn the_file_can_be_named_by_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    std::fs::write(&path, "[server]\nexecutors = 3\n").unwrap();
    let settings = load(&production(&[("SERVICE_CONFIG", path.to_str().unwrap())])).unwrap();
    assert_eq!(settings.server.executors, Some(3));
    let missing = load(&production(&[("SERVICE_CONFIG", "/nonexistent/x.toml")])).unwrap_err();
    assert!(missing.contains("/nonexistent/x.toml"), "{missing}");
}

#[test]
fn every_key_has_a_derived_variable() {
    let settings = load(&production(&[("SERVICE_SERVER_S3_BIND", "127.0.0.1:4444")])).unwrap();
    assert_eq!(settings.server.s3_bind.address.port(), 4444);
    let both = [("SERVICE_SERVER_S3_BIND", "127.0.0.1:4444"), ("SERVICE_S3_BIND", "127.0.0.1:5555")];
    let refusal = load(&production(&both)).unwrap_err();
    assert!(refusal.contains("SERVICE_SERVER_S3_BIND") && refusal.contains("SERVICE_S3_BIND"), "{refusal}");
}

#[test]
fn unknown_names_are_all_refused_together() {
    let environment =
        production(&[("SERVICE_S3_BNID", "x"), ("SERVICE_TLS_ELSE", "y"), ("SERVICEX", "fine")]);
    let refusal = load(&environment).unwrap_err();
    assert!(
        refusal.contains("SERVICE_S3_BNID is not a configuration key; did you mean SERVICE_S3_BIND?"),
        "{refusal}"
    );
    assert!(refusal.contains("SERVICE_TLS_ELSE") && !refusal.contains("SERVICEX"), "{refusal}");

    let file =
        "top = 1\ncertificate = \"a.pem\"\n[servre]\nx = 1\n[server]\nexecutor = 1\n[server.nested]\nx = 1\n";
    let refusal = load_file(file, &production(&[])).unwrap_err();
    for name in [
        "top",
        // The line of its section was missing.
        "certificate is not a configuration key; did you mean server.tls.certificate?",
        "servre",
        "server.executor is not a configuration key; did you mean server.executors?",
        "server.nested",
    ] {
        assert!(refusal.contains(name), "{name}: {refusal}");
    }
}

/// Consul and Swarm set `SERVICE_NAME` and `SERVICE_PORT`, which prevented the start.
#[test]
fn unknown_variables_of_no_section_cause_a_warning() {
    let stray =
        [("SERVICE_NAME", "x"), ("SERVICE_PORT", "7600"), ("SERVICE_LOGS", "y"), ("SERVICE_SERVERS", "z")];
    let warnings = load(&production(&stray)).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "SERVICE_LOGS is not a configuration key and has no effect; did you mean SERVICE_LOG?",
            "SERVICE_NAME is not a configuration key and has no effect",
            "SERVICE_PORT is not a configuration key and has no effect",
            "SERVICE_SERVERS is not a configuration key and has no effect",
        ]
    );
}

#[test]
fn every_missing_secret_is_named() {
    let refusal = load(&Environment::default()).unwrap_err();
    for variable in [
        "SERVICE_CREDENTIAL_MASTER_KEY",
        "SERVICE_ROOT_ACCESS_KEY",
        "SERVICE_ROOT_SECRET_KEY",
        "SERVICE_MANAGEMENT_SYSTEM_TOKEN",
    ] {
        assert!(refusal.contains(variable), "{variable}: {refusal}");
        let empty = production(&[(variable, "")]);
        assert!(load(&empty).unwrap_err().contains(variable), "an empty {variable} is a missing one");
    }
}

#[test]
fn short_equal_or_unprintable_secrets_are_refused() {
    for (variable, value, says) in [
        ("SERVICE_CREDENTIAL_MASTER_KEY", "fifteen-bytes-x", "16 to"),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", "thirty-one-bytes-long-012345678", "32 to"),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", MASTER_KEY, "differ"),
        ("SERVICE_METRICS_SCRAPE_TOKEN", TOKEN, "differ"),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", "thirty-two-bytes and a space-012345", "visible ASCII"),
        ("SERVICE_ROOT_SECRET_KEY", "short", "8 to"),
        ("SERVICE_ROOT_ACCESS_KEY", "has/slash", "letters"),
        ("SERVICE_ROOT_ACCESS_KEY", "ab", "letters"),
    ] {
        let refusal = load(&production(&[(variable, value)])).unwrap_err();
        assert!(refusal.contains(variable) && refusal.contains(says), "{variable}: {refusal}");
        assert!(!refusal.contains(value), "{refusal}");
    }
}

#[test]
fn secrets_under_32_bytes_cause_a_warning() {
    const SHORT: &str = "thirty-one-bytes-long-012345678";
    const ENOUGH: &str = "thirty-two-bytes-long-0123456789";
    for variable in
        ["SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_METRICS_SCRAPE_TOKEN"]
    {
        let about = |value| {
            let warnings = load(&production(&[(variable, value)])).unwrap().warnings;
            warnings.into_iter().filter(|warning| warning.contains(variable)).collect::<Vec<_>>()
        };
        let warnings = about(SHORT);
        assert!(
            matches!(&warnings[..], [warning] if warning.contains("32 bytes")),
            "{variable}: {warnings:?}"
        );
        assert!(!warnings[0].contains(SHORT));
        assert_eq!(about(ENOUGH), [""; 0]);
    }
}

#[test]
fn no_refusal_repeats_a_value() {
    /// Invalid for every kind but text and secrets, and easy to find in a message.
    const MARKER: &str = "HUNTER2\u{7f}//";
    for key in ALL_KEYS {
        if matches!(key.kind, Kind::Secret | Kind::Path) {
            continue;
        }
        let refusal = load(&production(&[(&key.variable(), MARKER)])).unwrap_err();
        assert!(refusal.contains(&key.variable()), "{}: {refusal}", key.name);
        assert!(!refusal.contains("HUNTER2"), "{}: {refusal}", key.name);

        let (section, name) = key.name.split_once('.').unwrap();
        let file = format!("[{section}]\n{name} = \"HUNTER2 //\"\n");
        let refusal = load_file(&file, &production(&[("SERVICE_ROOT_ACCESS_KEY", "")])).unwrap_err();
        assert!(refusal.contains(key.name), "{}: {refusal}", key.name);
        assert!(!refusal.contains("HUNTER2"), "{}: {refusal}", key.name);
    }
}

#[test]
fn a_syntax_error_is_reported_by_line_and_not_quoted() {
    let file = "[auth]\ncredential_master_key = \"HUNTER2\n";
    let refusal = load_file(file, &production(&[])).unwrap_err();
    // Neither the key nor the reason was named.
    assert!(
        refusal
            .contains("cairn.toml is not valid TOML at line 2, credential_master_key: invalid basic string"),
        "{refusal}"
    );
    assert!(!refusal.contains("HUNTER2"), "{refusal}");
    for (file, said) in [
        ("[auth]\ncredential_master_key = HUNTER2\n", "line 2, credential_master_key: "),
        ("[auth]\ncredential_master_key = \"\"\"a\nHUNTER2 = HUNTER2\n", ": "),
        ("[auth]\nHUNTER2\n", "line 2: "),
        ("[server.tls]\n[server.tls]\n", "line 2, server.tls: it is there twice"),
        ("[server]\nexecutors = 2\nexecutors = 3\n", "line 3, executors: it is there twice"),
    ] {
        let refusal = load_file(file, &production(&[])).unwrap_err();
        assert!(refusal.contains(said) && !refusal.contains("HUNTER2"), "{file}: {refusal}");
    }
    let refusal =
        load_file("[auth]\ncredential_master_key = 123456789012345678\n", &production(&[])).unwrap_err();
    assert!(refusal.contains("auth.credential_master_key") && !refusal.contains("1234"), "{refusal}");
}

#[test]
fn values_out_of_range_are_refused() {
    for (variable, bad) in [
        ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "0"),
        ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "301"),
        ("SERVICE_STORAGE_SLICES", "65"),
        ("SERVICE_SERVER_EXECUTORS", "-1"),
        ("SERVICE_LOG_JSON", "maybe"),
        ("SERVICE_LOG", "service=loud"),
    ] {
        let refusal = load(&production(&[(variable, bad)])).unwrap_err();
        assert!(refusal.contains(variable), "{refusal}");
    }
    assert!(load(&production(&[("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "300")])).is_ok());
}

#[test]
fn secrets_are_redacted() {
    let settings = load(&production(&[])).unwrap();
    let shown = format!("{settings:?}{:?}", settings.values.redacted().collect::<Vec<_>>());
    for secret in [MASTER_KEY, SECRET_KEY, TOKEN] {
        assert!(!shown.contains(secret));
    }
    assert!(shown.contains("<redacted>"));
    let secret = Secret::new("HUNTER2".to_owned());
    assert_eq!(format!("{secret} {secret:?}"), "<redacted> <redacted>");
}

#[test]
fn events_and_webhooks_have_the_documented_limits() {
    let settings = load(&production(&[])).unwrap();
    let webhooks = settings.webhooks;
    assert!(settings.events.enabled && !webhooks.allow_http && !webhooks.allow_private_networks);
    let events = settings.events.retention;
    assert_eq!((events.age_max, events.records_max), (Duration::from_secs(30 * 86_400), 100_000_000));
    assert_eq!((webhooks.maximum_attempts, webhooks.concurrency_per_target), (6, 8));
    for (variable, good, bad) in [
        ("SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS", "20", "21"),
        ("SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS", "1", "0"),
        ("SERVICE_WEBHOOKS_CONCURRENCY_PER_TARGET", "64", "65"),
        ("SERVICE_EVENTS_RETENTION_DAYS", "3650", "3651"),
        ("SERVICE_EVENTS_RETENTION_DAYS", "1", "0"),
    ] {
        assert!(load(&production(&[(variable, good)])).is_ok(), "{variable}={good}");
        assert!(load(&production(&[(variable, bad)])).unwrap_err().contains(variable), "{variable}={bad}");
    }
}

#[test]
fn encryption_at_rest_is_off_by_default() {
    assert!(!load(&production(&[])).unwrap().storage.encryption_enabled);
    for (text, enabled) in [("true", true), ("false", false)] {
        let settings = load(&production(&[("SERVICE_STORAGE_ENCRYPTION_ENABLED", text)])).unwrap();
        assert_eq!(settings.storage.encryption_enabled, enabled);
    }
    let refusal = load(&production(&[("SERVICE_STORAGE_ENCRYPTION_ENABLED", "yes please")])).unwrap_err();
    assert!(refusal.contains("SERVICE_STORAGE_ENCRYPTION_ENABLED"), "{refusal}");
}

#[test]
fn two_listeners_on_one_port_are_refused() {
    for (variable, address) in
        [("SERVICE_CONSOLE_BIND", "127.0.0.1:7600"), ("SERVICE_CONSOLE_BIND", "[::1]:7601")]
    {
        let refusal = load(&production(&[(variable, address)])).unwrap_err();
        assert!(refusal.contains("different ports") && refusal.contains(variable), "{refusal}");
        let off = load(&production(&[(variable, address), ("SERVICE_CONSOLE_ENABLED", "false")])).unwrap();
        assert!(off.server.console_bind.is_none(), "the address of a disabled listener does not matter");
    }
    let refusal = load(&production(&[("SERVICE_API_BIND", "127.0.0.1:7600")])).unwrap_err();
    assert!(refusal.contains("different ports"), "{refusal}");
}

#[test]
fn dev_creates_its_secrets_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = ServeOptions { data_dir: Some(folder.path().join("data")), ..options(Mode::Dev) };
    let first = load_settings(&options, &Environment::default()).unwrap();
    let again = load_settings(&options, &Environment::default()).unwrap();
    assert!(first.server.s3_bind.address.ip().is_loopback());
    assert_eq!(first.auth.credential_master_key, again.auth.credential_master_key);
    assert_eq!(first.auth.root_access_key, again.auth.root_access_key);
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    let own: Environment = [("SERVICE_ROOT_ACCESS_KEY", "MINE")].into_iter().collect();
    assert_eq!(load_settings(&options, &own).unwrap().auth.root_access_key, "MINE");
}

/// The file of secrets was created, and shown in the banner as something to keep, even if all secrets were configured and
/// its master key opened nothing.
#[test]
fn dev_creates_no_secrets_if_all_are_configured() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let options = ServeOptions { data_dir: Some(data_dir.clone()), ..options(Mode::Dev) };
    let settings = load_settings(&options, &production(&[])).unwrap();
    assert_eq!((settings.dev_secrets, data_dir.exists()), (None, false));
    let settings = load_settings(&options, &Environment::default()).unwrap();
    assert_eq!(settings.dev_secrets, Some(data_dir.join("dev-secrets.toml")));
}

/// The receivers of a developer's webhooks run on the same machine, and without TLS.
#[test]
fn dev_delivers_webhooks_to_this_machine_unless_configured() {
    let folder = tempfile::tempdir().unwrap();
    let options = ServeOptions { data_dir: Some(folder.path().join("data")), ..options(Mode::Dev) };
    let webhooks = load_settings(&options, &Environment::default()).unwrap().webhooks;
    assert!(webhooks.allow_http && webhooks.allow_private_networks);
    let strict: Environment = [("SERVICE_WEBHOOKS_ALLOW_HTTP", "false")].into_iter().collect();
    let webhooks = load_settings(&options, &strict).unwrap().webhooks;
    assert!(!webhooks.allow_http && webhooks.allow_private_networks);
}

#[test]
fn dev_refuses_other_addresses_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let options = ServeOptions { data_dir: Some(data_dir.clone()), ..options(Mode::Dev) };
    for variable in ["SERVICE_S3_BIND", "SERVICE_API_BIND"] {
        let open: Environment = [(variable, "0.0.0.0:7777")].into_iter().collect();
        let refusal = load_settings(&options, &open).unwrap_err();
        assert!(
            matches!(refusal, LoadError::Config(_)) && refusal.to_string().contains(variable),
            "{refusal}"
        );
    }
    let wrong: Environment = [("SERVICE_LOG", "service=loud")].into_iter().collect();
    assert!(load_settings(&options, &wrong).is_err());
    assert!(!data_dir.exists());
}

#[test]
fn keys_are_unique_and_their_defaults_are_valid() {
    for (index, key) in ALL_KEYS.iter().enumerate() {
        assert!(ALL_KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
        assert!(key.doc.ends_with('.'), "{}", key.name);
        assert!(matches!(key.name.split('.').count(), 2 | 3), "{}", key.name);
        assert!(!(key.kind == Kind::Secret && key.default.is_some()), "{}", key.name);
    }
    assert!(load(&production(&[])).is_ok(), "all defaults parse");
}

/// A mistake here would make a listener speak plain HTTP, or use another listener's certificate, without notice.
#[test]
fn each_listener_has_its_own_tls_settings() {
    let of = |environment: &[(&str, &str)]| load(&production(environment)).map(|read| read.server.tls);
    let pair = |name: &str| {
        Some(PairFiles { certificate: format!("/{name}.crt").into(), key: format!("/{name}.key").into() })
    };
    let none = || TlsSettings { hsts_seconds: 31_536_000, ..TlsSettings::default() };
    let common = [("SERVICE_TLS_CERTIFICATE", "/all.crt"), ("SERVICE_TLS_KEY", "/all.key")];
    let with = |more: &[(&'static str, &'static str)]| of(&[&common[..], more].concat());
    assert_eq!(of(&[]), Ok(none()));
    assert_eq!(
        with(&[]),
        Ok(TlsSettings { s3: pair("all"), api: pair("all"), console: pair("all"), ..none() })
    );
    assert_eq!(
        with(&[("SERVICE_TLS_API_ENABLED", "false")]),
        Ok(TlsSettings { s3: pair("all"), api: None, console: pair("all"), ..none() })
    );
    let own = [("SERVICE_TLS_API_CERTIFICATE", "/api.crt"), ("SERVICE_TLS_API_KEY", "/api.key")];
    assert_eq!(
        with(&own),
        Ok(TlsSettings { s3: pair("all"), api: pair("api"), console: pair("all"), ..none() })
    );
    assert_eq!(of(&own), Ok(TlsSettings { s3: None, api: pair("api"), console: None, ..none() }));
    let own = [("SERVICE_TLS_CONSOLE_CERTIFICATE", "/c.crt"), ("SERVICE_TLS_CONSOLE_KEY", "/c.key")];
    assert_eq!(of(&own), Ok(TlsSettings { s3: None, api: None, console: pair("c"), ..none() }));
    let without_console = [&own[..], &[("SERVICE_CONSOLE_ENABLED", "false")]].concat();
    assert_eq!(of(&without_console), Ok(none()));
    let file = "[server.tls]\ncertificate = \"/all.crt\"\nkey = \"/all.key\"\ns3_enabled = false\n";
    let of_file = load_file(file, &production(&[])).unwrap().server.tls;
    assert_eq!(of_file, TlsSettings { s3: None, api: pair("all"), console: pair("all"), ..none() });
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let refused = |environment: &[(&str, &str)]| load(&production(environment)).unwrap_err();
    let without_key = refused(&[("SERVICE_TLS_S3_CERTIFICATE", "/a")]);
    assert!(
        without_key.contains("SERVICE_TLS_S3_CERTIFICATE is set, but SERVICE_TLS_S3_KEY is not"),
        "{without_key}"
    );
    let without_certificate = refused(&[("SERVICE_TLS_KEY", "/a")]);
    assert!(without_certificate.contains("SERVICE_TLS_KEY is set, but SERVICE_TLS_CERTIFICATE is not"));
    let without_any = refused(&[("SERVICE_TLS_S3_ENABLED", "true")]);
    assert!(without_any.contains("SERVICE_TLS_S3_ENABLED needs a certificate"), "{without_any}");
    for (file, name) in [
        ("[server.tls]\ncertificat = \"/a\"\n", "server.tls.certificat is not"),
        ("[server.tsl]\ncertificate = \"/a\"\n", "server.tsl is not"),
        ("[server.tls.more]\ncertificate = \"/a\"\n", "server.tls.more is not"),
        ("[server]\ntls = \"on\"\n", "server.tls is not"),
    ] {
        let error = load_file(file, &production(&[])).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
}

/// A list that trusts every peer would let every client choose its address.
#[test]
fn no_proxy_is_trusted_by_default_and_wrong_lists_are_refused() {
    let of =
        |environment: &[(&str, &str)]| load(&production(environment)).map(|read| read.server.trusted_proxies);
    assert_eq!(of(&[]), Ok(None));
    assert_eq!(of(&[("SERVICE_SERVER_FORWARDED_HEADER", "forwarded")]), Ok(None));
    let written = [("SERVICE_SERVER_TRUSTED_PROXIES", "192.0.2.7, 10.0.0.0/8,fd00::/8")];
    let trusted = of(&written).unwrap().unwrap();
    for (address, is_trusted) in
        [("192.0.2.7", true), ("10.9.9.9", true), ("fd01::1", true), ("192.0.2.8", false)]
    {
        assert_eq!(trusted.contains(address.parse().unwrap()), is_trusted, "{address}");
    }
    let file = "[server]\ntrusted_proxies = [\"192.0.2.7\", \"10.0.0.0/8\", \"fd00::/8\"]\nforwarded_header = \"forwarded\"\n";
    let of_file = load_file(file, &production(&[])).unwrap().server.trusted_proxies.unwrap();
    assert_ne!(of_file, trusted, "the header differs");
    assert!(of_file.contains("fd01::1".parse().unwrap()));

    for bad in ["0.0.0.0/0", "10.0.0.1/8", "proxy.example.com", "10.0.0.0/8;10.1.0.0/16"] {
        let refusal = of(&[("SERVICE_SERVER_TRUSTED_PROXIES", bad)]).unwrap_err();
        assert!(
            refusal.contains("SERVICE_SERVER_TRUSTED_PROXIES") && refusal.contains("10.0.0.0/8 or"),
            "{refusal}"
        );
    }
    let many = vec!["192.0.2.7"; 65].join(",");
    assert!(of(&[("SERVICE_SERVER_TRUSTED_PROXIES", &many)]).is_err());
    let refusal = of(&[("SERVICE_SERVER_FORWARDED_HEADER", "x-real-ip")]).unwrap_err();
    assert!(refusal.contains("x-forwarded-for or forwarded"), "{refusal}");
}

#[test]
fn the_documentation_matches_the_table_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    if std::env::var_os("CAIRN_UPDATE_DOCS").is_some() {
        std::fs::write(&path, configuration_document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written,
        configuration_document(),
        "run with CAIRN_UPDATE_DOCS=1 and commit docs/configuration.md"
    );
}

/// The key of the generated certificate was used with the configured certificate, and the error said that they did not match.
#[test]
fn dev_refuses_a_certificate_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("own.pem");
    let options =
        ServeOptions { data_dir: Some(folder.path().to_owned()), dev_tls: true, ..options(Mode::Dev) };
    let refusal =
        load_settings(&options, &production(&[("SERVICE_TLS_CERTIFICATE", certificate.to_str().unwrap())]));
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("SERVICE_TLS_KEY is not"), "{refusal}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is created");
}

/// The keys that sign-in for people needs.
const OPENID: [(&str, &str); 4] = [
    ("SERVICE_CONSOLE_OPENID_ISSUER", "https://provider.example/realm"),
    ("SERVICE_CONSOLE_OPENID_CLIENT_ID", "cairn"),
    ("SERVICE_CONSOLE_OPENID_CONSOLE_URL", "http://127.0.0.1:7602"),
    ("SERVICE_CONSOLE_OPENID_AUDITORS", "audit,readers"),
];

#[test]
fn sign_in_for_people_is_off_unless_it_is_complete() {
    assert!(load(&production(&[])).unwrap().console.openid.is_none());
    let of = |more: &[(&str, &str)]| load(&production(&[&OPENID, more].concat()));
    let openid = of(&[]).unwrap().console.openid.unwrap();
    assert_eq!(openid.redirect_uri(), "http://127.0.0.1:7602/sign-in/callback");
    assert_eq!((openid.scopes.as_str(), openid.role_claim.as_str()), ("openid profile email", "groups"));
    assert_eq!(openid.roles.auditors, ["audit", "readers"]);
    let file = "[console.openid]\nissuer = \"https://provider.example\"\nclient_id = \"cairn\"\nclient_secret = \"hidden-secret\"\n\
                console_url = \"https://localhost\"\nsystem_admins = [\"cn=admins,dc=example\"]\n";
    let settings = load_file(file, &production(&[])).unwrap();
    assert!(!format!("{settings:?}").contains("hidden-secret"));
    let openid = settings.console.openid.unwrap();
    assert_eq!(openid.roles.system_admins, ["cn=admins,dc=example"]);
    assert_eq!(openid.client_secret.as_ref().map(|secret| secret.as_str()), Some("hidden-secret"));
    assert_eq!(openid.roles.members, []);
    let without_roles =
        [&OPENID[..3], &[("SERVICE_CONSOLE_OPENID_MEMBERS", "team = read all,cn=ops=write,team=write")]];
    let openid = load(&production(&without_roles.concat())).unwrap().console.openid.unwrap();
    let members: Vec<_> = openid.roles.members.iter().map(|(value, policy)| (&**value, &**policy)).collect();
    assert_eq!(members, [("team", "read all"), ("cn=ops", "write"), ("team", "write")]);

    for (name, _) in OPENID {
        let without: Vec<_> = OPENID.into_iter().filter(|(other, _)| *other != name).collect();
        let refusal = load(&production(&without)).unwrap_err();
        assert!(refusal.contains(name), "{name}: {refusal}");
    }
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("ca.pem");
    std::fs::write(&other, "none").unwrap();
    for (name, bad, reason) in [
        ("ISSUER", "http://provider.example", "https URL"),
        ("ISSUER", "https://provider.example?a", "without query"),
        ("CONSOLE_URL", "http://10.0.0.1", "https URL"),
        ("CONSOLE_URL", "https://console.example/x", "without a path"),
        ("CONSOLE_URL", "https://console.example", "SERVICE_CONSOLE_HOSTS"),
        ("SCOPES", "profile", "openid"),
        ("SYSTEM_ADMINS", "readers", "SERVICE_CONSOLE_OPENID_AUDITORS contain the same value"),
        ("MEMBERS", "team=a,readers=b", "SERVICE_CONSOLE_OPENID_MEMBERS contain the same value"),
        ("MEMBERS", "team", "team = readers"),
        ("MEMBERS", "team=", "team = readers"),
        ("MEMBERS", "=policy", "team = readers"),
        ("MEMBERS", "team=pol\u{ef}cy", "team = readers"),
        ("CA_FILE", "/nowhere", "cannot be read"),
        ("CA_FILE", other.to_str().unwrap(), "contains no certificate"),
        ("NAME", &"x".repeat(65), "at most 64 bytes"),
    ] {
        let variable = format!("SERVICE_CONSOLE_OPENID_{name}");
        let refusal = of(&[(&variable, bad)]).unwrap_err();
        assert!(refusal.contains(reason) && refusal.contains(&variable), "{variable}: {refusal}");
    }
    let named = [("SERVICE_CONSOLE_HOSTS", "console.example")];
    let url = ("SERVICE_CONSOLE_OPENID_CONSOLE_URL", "https://console.example:8443/");
    let openid = of(&[named[0], url]).unwrap().console.openid.unwrap();
    assert_eq!(openid.console_url, "https://console.example:8443");
}
