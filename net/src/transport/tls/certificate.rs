//! Reads a certificate chain and its matching private key.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::transport::tls::validity::validity;

/// The label in PEM of a private key that is encrypted with a password.
const ENCRYPTED_KEY: &[u8] = b"ENCRYPTED";
/// Longest chain: a leaf, its issuers, and a few superfluous ones.
const CHAIN_MAX: usize = 16;

/// A certificate chain and the private key of its first certificate.
#[derive(Clone, Debug)]
pub struct CertificateAndKey {
    pub(super) key: Arc<CertifiedKey>,
    validity: Option<Range<i64>>,
}

/// The error of a certificate and a key that cannot be used together. No message contains any part of the key.
#[derive(Debug)]
pub enum CertificateAndKeyError {
    /// The certificate file is not PEM or contains no certificate.
    InvalidCertificate(String),
    /// The chain has too many certificates.
    ChainTooLong,
    /// The key file is not PEM or contains no private key.
    InvalidKey(String),
    /// The key is encrypted with a password.
    EncryptedKey,
    /// The kind or length of the key is not supported.
    UnsupportedKey(String),
    /// The key is not the first certificate's, or that certificate cannot be parsed.
    KeyMismatch(String),
}

impl fmt::Display for CertificateAndKeyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidCertificate(why) => write!(out, "it contains no certificate in PEM form ({why})"),
            Self::ChainTooLong => write!(out, "the chain has more than {CHAIN_MAX} certificates"),
            Self::InvalidKey(why) => write!(out, "it contains no private key in PEM form ({why})"),
            Self::EncryptedKey => out.write_str(
                "the private key is encrypted with a password; `openssl pkey -in key.pem -out plain.pem` removes the password",
            ),
            Self::UnsupportedKey(why) => write!(
                out,
                "the private key is not supported ({why}); use RSA with 2048 to 8192 bits, ECDSA on P-256 or P-384, or Ed25519"
            ),
            Self::KeyMismatch(why) => write!(
                out,
                "the private key does not match the first certificate, which must be the server's own ({why})"
            ),
        }
    }
}

impl std::error::Error for CertificateAndKeyError {}

impl CertificateAndKey {
    /// Reads a certificate chain and its private key, both as PEM (RFC 7468). The server's own certificate comes first.
    /// Keys may be PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    /// [`CertificateAndKeyError`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, CertificateAndKeyError> {
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates).take(CHAIN_MAX + 1).collect();
        let chain = chain.map_err(|error| CertificateAndKeyError::InvalidCertificate(error.to_string()))?;
        let Some(leaf) = chain.first() else {
            return Err(CertificateAndKeyError::InvalidCertificate("no certificate section".to_owned()));
        };
        if chain.len() > CHAIN_MAX {
            return Err(CertificateAndKeyError::ChainTooLong);
        }
        let validity = validity(leaf);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            let is_encrypted = key.windows(ENCRYPTED_KEY.len()).any(|window| window == ENCRYPTED_KEY);
            if is_encrypted {
                CertificateAndKeyError::EncryptedKey
            } else {
                CertificateAndKeyError::InvalidKey(error.to_string())
            }
        })?;
        let signing_key = default_provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| CertificateAndKeyError::UnsupportedKey(error.to_string()))?;
        let key = CertifiedKey::new(chain, signing_key);
        key.keys_match().map_err(|error| CertificateAndKeyError::KeyMismatch(error.to_string()))?;
        Ok(Self { key: Arc::new(key), validity })
    }

    /// Returns the validity of the server's certificate in seconds since 1970, or `None` when it cannot be parsed.
    #[must_use]
    pub fn validity(&self) -> Option<Range<i64>> {
        self.validity.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_and_its_key_are_accepted() {
        let (certificate, key) = pem();
        let pair = CertificateAndKey::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(pair.validity().is_some());
        // Some tools write both into one file.
        let both = format!("{key}{certificate}");
        assert!(CertificateAndKey::from_pem(both.as_bytes(), both.as_bytes()).is_ok());
    }

    #[test]
    fn each_mistake_has_its_own_error() {
        let ((certificate, key), (_, other_key)) = (pem(), pem());
        let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
        let refused =
            |certificate: &[u8], key: &[u8]| CertificateAndKey::from_pem(certificate, key).unwrap_err();
        assert!(matches!(refused(b"", key), CertificateAndKeyError::InvalidCertificate(_)));
        assert!(matches!(refused(key, key), CertificateAndKeyError::InvalidCertificate(_)));
        assert!(matches!(refused(&certificate[..200], key), CertificateAndKeyError::InvalidCertificate(_)));
        assert!(matches!(refused(certificate, b"no key"), CertificateAndKeyError::InvalidKey(_)));
        assert!(matches!(refused(certificate, certificate), CertificateAndKeyError::InvalidKey(_)));
        assert!(matches!(refused(certificate, other_key.as_bytes()), CertificateAndKeyError::KeyMismatch(_)));
        let sealed = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert!(matches!(refused(certificate, sealed), CertificateAndKeyError::EncryptedKey));
        let many = certificate.repeat(CHAIN_MAX + 1);
        assert!(matches!(refused(&many, key), CertificateAndKeyError::ChainTooLong));
    }
}
