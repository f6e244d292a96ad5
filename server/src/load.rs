//! Loads settings from command line, environment and files, also for `--dev`.

use std::fmt;
use std::io::{IsTerminal as _, stderr};
use std::path::{Path, PathBuf};

use crate::config::{
    CONFIG_FILE_VARIABLE, ConfigError, EffectiveKey, Environment, Key, Layers, Problem, Settings, keys,
};
use crate::dev::secrets::{DevSecrets, DevSecretsError};
use crate::dev::{certificate, missing_secrets, secrets};

/// The command-line options of `serve`.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Production, or development on a local machine.
    pub mode: Mode,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--tls`: with [`Mode::Dev`], a certificate for this host is created if none is configured.
    pub dev_tls: bool,
    /// `--console-dir`: the files of the console are read from this folder.
    pub console_dir: Option<PathBuf>,
}

/// The mode of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All secrets must be configured.
    Production,
    /// Secrets are created on first use; listens on loopback addresses only.
    Dev,
}

/// Errors of loading the settings.
#[derive(Debug)]
pub enum LoadError {
    /// The configuration is invalid.
    Config(ConfigError),
    /// The secrets of `--dev` could not be loaded or created.
    DevSecrets(DevSecretsError),
    /// The certificate of `--dev --tls` could not be created.
    DevCertificate(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => {
                error.fmt(out)?;
                missing_secrets::advice(&error.problems).map_or(Ok(()), |advice| write!(out, "\n{advice}"))
            }
            Self::DevSecrets(error) => error.fmt(out),
            Self::DevCertificate(error) => {
                write!(out, "the certificate for --dev --tls could not be created: {error}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl From<ConfigError> for LoadError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// Reads the configuration.
///
/// # Errors
/// [`LoadError`] if anything is invalid or missing. Nothing has been started or opened then.
pub fn load_settings(options: &ServeOptions, environment: &Environment) -> Result<Settings, LoadError> {
    Sources::read(options, environment).settings()
}

/// The values of command line, environment and files. Each file is read once, because it may be a pipe.
pub(crate) struct Sources {
    layers: Layers,
    mode: Mode,
    dev_tls: bool,
    console_dir: Option<PathBuf>,
}

impl Sources {
    /// Reads all sources. What is wrong with them is reported when the settings are made.
    pub(crate) fn read(options: &ServeOptions, environment: &Environment) -> Self {
        let ServeOptions { mode, dev_tls, ref console_dir, .. } = *options;
        Self { layers: layers(options, environment), mode, dev_tls, console_dir: console_dir.clone() }
    }

    /// Makes the settings. With `--dev`, creates the files that are missing.
    pub(crate) fn settings(&self) -> Result<Settings, LoadError> {
        self.load(&DevProviders { secrets: secrets::ensure, certificate: self.dev_tls })
    }

    /// Like [`Sources::settings`], but creates no file: missing secrets of `--dev` are generated and not stored.
    pub(crate) fn settings_to_check(&self) -> Result<Settings, LoadError> {
        self.load(&DevProviders { secrets: secrets::find, certificate: false })
    }

    fn load(&self, providers: &DevProviders) -> Result<Settings, LoadError> {
        let layers = self.layers.clone();
        let mut settings = match self.mode {
            Mode::Production => Settings::from_values(layers.finish()?)?,
            Mode::Dev => load_dev(layers, providers)?,
        };
        settings.console.folder.clone_from(&self.console_dir);
        Ok(settings)
    }
}

/// The providers of what is not configured, for `--dev`.
struct DevProviders {
    /// Returns the secrets of a data folder, some of which are not configured.
    secrets: fn(&Path, &[&Key]) -> Result<DevSecrets, DevSecretsError>,
    /// Whether to create a certificate.
    certificate: bool,
}

/// Returns what command line, environment and file set.
fn layers(options: &ServeOptions, environment: &Environment) -> Layers {
    let mut layers = Layers::default();
    if let Some(data_dir) = &options.data_dir {
        layers = layers.option(&keys::DATA_DIR, "--data-dir", &data_dir.to_string_lossy());
    }
    layers = layers.environment(environment);
    let file = options.config.clone().or_else(|| environment.get(CONFIG_FILE_VARIABLE).map(PathBuf::from));
    if let Some(path) = file {
        layers = layers.file(&path);
    }
    layers
}

/// Returns every key with its effective value and origin, and what is wrong with the configuration. Creates no file.
#[must_use]
pub fn effective_config(
    options: &ServeOptions,
    environment: &Environment,
) -> (Vec<EffectiveKey>, Option<LoadError>) {
    let sources = Sources::read(options, environment);
    match sources.settings_to_check() {
        Ok(settings) => (settings.values.effective(), None),
        Err(error) => (sources.layers.effective(), Some(error)),
    }
}

/// The default data folder of `--dev`, in the current folder.
const DEV_DATA_DIR: &str = "./cairn-data";
const DEV_S3_BIND: &str = "127.0.0.1:7600";
/// The default log filter of `--dev` on a terminal: warnings, and the lines of requests that are selected below.
const DEV_TERMINAL_LOG_FILTER: &str = "service=warn,service::request=info";
/// The default requests in the log of `--dev` on a terminal.
const DEV_TERMINAL_REQUEST_LOG: &str = "errors";

fn load_dev(layers: Layers, providers: &DevProviders) -> Result<Settings, LoadError> {
    let mut layers = layers
        .default_value(&keys::DATA_DIR, DEV_DATA_DIR)
        .default_value(&keys::S3_BIND, DEV_S3_BIND)
        // The receivers of a developer's webhooks run on the same machine.
        .default_value(&keys::ALLOW_HTTP, "true")
        // Other servers of the developer are at `localhost` too.
        .default_value(&keys::TLS_HSTS, "0")
        .default_value(&keys::ALLOW_PRIVATE, "true");
    if stderr().is_terminal() {
        // A developer reads the terminal: ready-to-paste lines must not scroll away.
        layers = layers
            .default_value(&keys::LOG_FILTER, DEV_TERMINAL_LOG_FILTER)
            .default_value(&keys::REQUEST_LOG, DEV_TERMINAL_REQUEST_LOG);
    }
    layers.check()?;
    check_loopback(&layers)?;
    let Some(data_dir) = layers.path(&keys::DATA_DIR) else {
        return Ok(Settings::from_values(layers.finish()?)?);
    };
    let missing: Vec<&Key> = secrets::GENERATED.into_iter().filter(|key| layers.lacks_any(&[*key])).collect();
    let mut dev_secrets = None;
    if !missing.is_empty() {
        match (providers.secrets)(&data_dir, &missing).map_err(LoadError::DevSecrets)? {
            DevSecrets::File(path) => {
                layers = layers.file(&path);
                dev_secrets = Some(path);
            }
            DevSecrets::Text(text) => {
                layers = layers.generated(Path::new(secrets::DEV_SECRETS_FILE), &text);
            }
        }
    }
    let mut dev_authority = None;
    // If only one of the two is set, the validation of all values reports it.
    let has_no_pair = layers.lacks_any(&[&keys::TLS_CERTIFICATE]) && layers.lacks_any(&[&keys::TLS_KEY]);
    if providers.certificate && has_no_pair {
        let made = certificate::ensure(&data_dir).map_err(LoadError::DevCertificate)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        layers = layers
            .default_value(&keys::TLS_CERTIFICATE, &path(&made.pair.certificate))
            .default_value(&keys::TLS_KEY, &path(&made.pair.key));
        dev_authority = Some(made.authority);
    }
    Ok(Settings { dev_secrets, dev_authority, ..Settings::from_values(layers.finish()?)? })
}

/// `--dev` may only listen on loopback addresses, because its secrets are generated.
fn check_loopback(layers: &Layers) -> Result<(), ConfigError> {
    let problems: Vec<Problem> = [&keys::S3_BIND, &keys::API_BIND, &keys::CONSOLE_BIND]
        .into_iter()
        .filter(|key| layers.address(key).is_some_and(|address| !address.ip().is_loopback()))
        .map(|key| {
            Problem::Inconsistent(format!(
                "{} is not a loopback address, but serve --dev listens on loopback addresses only. To accept connections \
                 from other hosts, run serve without --dev and with your own secrets",
                key.variable()
            ))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
}
