//! Section `server.tls`: which listeners speak TLS, and with which certificate.

use std::path::PathBuf;

use super::key::Key;
use super::keys;
use super::problem::Problem;
use super::reader::Reader;
use super::value::Value;

/// A certificate chain and its private key, as files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairFiles {
    /// The chain, PEM.
    pub certificate: PathBuf,
    /// The key, PEM.
    pub key: PathBuf,
}

/// The certificates of the listeners; `None` means plain HTTP. And what is sent with TLS.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TlsSettings {
    /// The data plane.
    pub s3: Option<PairFiles>,
    /// The management plane.
    pub api: Option<PairFiles>,
    /// The console's listener.
    pub console: Option<PairFiles>,
    /// The time for which browsers use only TLS for this host, in seconds.
    pub hsts_seconds: u32,
}

/// The keys of one listener.
struct ListenerKeys {
    enabled: &'static Key,
    certificate: &'static Key,
    key: &'static Key,
}

const S3: ListenerKeys = ListenerKeys {
    enabled: &keys::TLS_S3_ENABLED,
    certificate: &keys::TLS_S3_CERTIFICATE,
    key: &keys::TLS_S3_KEY,
};
const API: ListenerKeys = ListenerKeys {
    enabled: &keys::TLS_API_ENABLED,
    certificate: &keys::TLS_API_CERTIFICATE,
    key: &keys::TLS_API_KEY,
};
const CONSOLE: ListenerKeys = ListenerKeys {
    enabled: &keys::TLS_CONSOLE_ENABLED,
    certificate: &keys::TLS_CONSOLE_CERTIFICATE,
    key: &keys::TLS_CONSOLE_KEY,
};

impl Reader<'_> {
    /// Reads the section. Without a console, its keys have no effect.
    pub(super) fn tls(&mut self, has_console: bool) -> Option<TlsSettings> {
        let common = self.pair(&keys::TLS_CERTIFICATE, &keys::TLS_KEY);
        let s3 = self.listener(&S3, common.as_ref());
        let api = self.listener(&API, common.as_ref());
        let console = self.listener(&CONSOLE, common.as_ref());
        let hsts_seconds = self.number(&keys::TLS_HSTS);
        let console = console?.filter(|_| has_console);
        Some(TlsSettings { s3: s3?, api: api?, console, hsts_seconds: hsts_seconds? })
    }

    fn listener(&mut self, keys: &ListenerKeys, common: Option<&PairFiles>) -> Option<Option<PairFiles>> {
        let enabled = self
            .optional(keys.enabled, |value| if let Value::Flag(flag) = value { Some(*flag) } else { None })?;
        let pair = self.pair(keys.certificate, keys.key).or_else(|| common.cloned());
        match enabled {
            Some(false) => Some(None),
            Some(true) if pair.is_none() => {
                let (name, specific) = (self.values.source(keys.enabled), keys.certificate.variable());
                let common = keys::TLS_CERTIFICATE.variable();
                self.problems.push(Problem::Inconsistent(format!(
                    "{name} needs a certificate: set {common} or {specific}"
                )));
                None
            }
            _ => Some(pair),
        }
    }

    /// Reads a certificate and its key. One without the other is a problem.
    fn pair(&mut self, certificate: &'static Key, key: &'static Key) -> Option<PairFiles> {
        let path = |value: &Value| if let Value::Path(path) = value { Some(path.clone()) } else { None };
        let found = (self.optional(certificate, path)?, self.optional(key, path)?);
        let (given, missing) = match found {
            (Some(certificate), Some(key)) => return Some(PairFiles { certificate, key }),
            (None, None) => return None,
            (Some(_), None) => (certificate, key),
            (None, Some(_)) => (key, certificate),
        };
        let (given, missing) = (self.values.source(given), missing.variable());
        self.problems.push(Problem::Inconsistent(format!("{given} is set, but {missing} is not; set both")));
        None
    }
}
