//! From command line, environment and files to settings, in production and with `--dev`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::config::{CONFIG_FILE_VARIABLE, ConfigError, Environment, Layers, Problem, Settings, keys};
use crate::dev_certificate;
use crate::dev_secrets::{self, DevSecrets, DevSecretsError};

/// What the command line of `serve` says.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Production, or for trying out on one's own machine.
    pub mode: Mode,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--tls`: with [`Mode::Dev`], a certificate for this host is made if none is given.
    pub dev_tls: bool,
}

/// How the service is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All secrets must be given.
    Production,
    /// Secrets are made on first use; loopback only.
    Dev,
}

/// Why there are no settings.
#[derive(Debug)]
pub enum LoadError {
    /// The configuration is wrong.
    Config(ConfigError),
    /// The secrets of `--dev`.
    DevSecrets(DevSecretsError),
    /// The certificate of `--dev --tls`.
    DevCertificate(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(out),
            Self::DevSecrets(error) => error.fmt(out),
            Self::DevCertificate(error) => write!(out, "there is no certificate for --dev --tls: {error}"),
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
/// When anything in it is wrong or missing; nothing has been started or opened then.
pub fn load_settings(options: &ServeOptions, environment: &Environment) -> Result<Settings, LoadError> {
    let made = Making { secrets: dev_secrets::ensure, certificate: options.dev_tls };
    load(options, environment, made)
}

/// As [`load_settings`], but nothing is made: secrets of `--dev` that there are none of yet are made up and forgotten.
pub(crate) fn load_to_check(
    options: &ServeOptions,
    environment: &Environment,
) -> Result<Settings, LoadError> {
    let made = Making { secrets: dev_secrets::find, certificate: false };
    load(options, environment, made)
}

/// What is made for `--dev` when it is not given.
struct Making {
    /// Gives the secrets, for the data folder.
    secrets: fn(&Path) -> Result<DevSecrets, DevSecretsError>,
    /// Whether there is to be a certificate.
    certificate: bool,
}

fn load(options: &ServeOptions, environment: &Environment, making: Making) -> Result<Settings, LoadError> {
    let mut layers = Layers::default();
    if let Some(data_dir) = &options.data_dir {
        layers = layers.option(&keys::DATA_DIR, "--data-dir", &data_dir.to_string_lossy());
    }
    layers = layers.environment(environment);
    let file = options.config.clone().or_else(|| environment.get(CONFIG_FILE_VARIABLE).map(PathBuf::from));
    if let Some(path) = file {
        layers = layers.file(&path);
    }
    match options.mode {
        Mode::Production => Ok(Settings::from_values(layers.finish()?)?),
        Mode::Dev => load_dev(layers, &making),
    }
}

/// The data folder of `--dev` when none is given: beside whatever one is working on.
const DEV_DATA_DIR: &str = "./cairn-data";
const DEV_S3_BIND: &str = "127.0.0.1:7600";

fn load_dev(layers: Layers, making: &Making) -> Result<Settings, LoadError> {
    let mut layers =
        layers.default_value(&keys::DATA_DIR, DEV_DATA_DIR).default_value(&keys::S3_BIND, DEV_S3_BIND);
    layers.check()?;
    check_loopback(&layers)?;
    let Some(data_dir) = layers.path(&keys::DATA_DIR) else {
        return Ok(Settings::from_values(layers.finish()?)?);
    };
    let secrets = if layers.lacks_any(&dev_secrets::MADE_UP) {
        (making.secrets)(&data_dir).map_err(LoadError::DevSecrets)?
    } else {
        DevSecrets::None
    };
    let mut dev_secrets = None;
    match secrets {
        DevSecrets::None => {}
        DevSecrets::File(path) => {
            layers = layers.file(&path);
            dev_secrets = Some(path);
        }
        DevSecrets::Text(text) => layers = layers.text(Path::new(dev_secrets::DEV_SECRETS_FILE), &text),
    }
    let mut dev_authority = None;
    // One without the other is a mistake, that the check of all values names.
    let has_no_pair = layers.lacks_any(&[&keys::TLS_CERTIFICATE]) && layers.lacks_any(&[&keys::TLS_KEY]);
    if making.certificate && has_no_pair {
        let made = dev_certificate::ensure(&data_dir).map_err(LoadError::DevCertificate)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        layers = layers
            .default_value(&keys::TLS_CERTIFICATE, &path(&made.pair.certificate))
            .default_value(&keys::TLS_KEY, &path(&made.pair.key));
        dev_authority = Some(made.authority);
    }
    Ok(Settings { dev_secrets, dev_authority, ..Settings::from_values(layers.finish()?)? })
}

/// With secrets that nobody chose, nobody else may connect.
fn check_loopback(layers: &Layers) -> Result<(), ConfigError> {
    let problems: Vec<Problem> = [&keys::S3_BIND, &keys::API_BIND, &keys::CONSOLE_BIND]
        .into_iter()
        .filter(|key| layers.address(key).is_some_and(|address| !address.ip().is_loopback()))
        .map(|key| {
            Problem::Inconsistent(format!(
                "{} is not a loopback address; serve --dev listens on loopback only. Serve without --dev, with secrets of \
                 your own, to be reached from elsewhere",
                key.variable()
            ))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
}
