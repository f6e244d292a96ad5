//! A certificate chain with its private key, read and checked to belong together.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::validity::validity;

/// What PEM calls a private key under a password.
const ENCRYPTED_KEY: &[u8] = b"ENCRYPTED";
/// Longest chain: a leaf, its issuers, and some that do no harm.
const CHAIN_MAX: usize = 16;

/// A certificate chain and the private key of its first certificate.
#[derive(Clone, Debug)]
pub struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    validity: Option<Range<i64>>,
}

/// Why a certificate and a key are no pair. No message repeats any of the key.
#[derive(Debug)]
pub enum PairError {
    /// The certificate's text is not PEM, or holds no certificate.
    NoCertificate(String),
    /// More certificates than any chain has.
    ChainTooLong,
    /// The key's text is not PEM, or holds no private key.
    NoKey(String),
    /// The key is under a password.
    EncryptedKey,
    /// A kind or length of key that TLS here cannot sign with.
    UnsupportedKey(String),
    /// The key is not that of the first certificate, or that certificate cannot be read.
    NoPair(String),
}

impl fmt::Display for PairError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate(why) => write!(out, "there is no certificate in PEM form in it ({why})"),
            Self::ChainTooLong => write!(out, "the chain has more than {CHAIN_MAX} certificates"),
            Self::NoKey(why) => write!(out, "there is no private key in PEM form in it ({why})"),
            Self::EncryptedKey => out.write_str(
                "the private key is under a password; `openssl pkey -in key.pem -out plain.pem` takes it off",
            ),
            Self::UnsupportedKey(why) => write!(
                out,
                "the private key cannot be used ({why}): RSA of 2048 to 8192 bits, ECDSA on P-256 or P-384, and Ed25519 can"
            ),
            Self::NoPair(why) => write!(
                out,
                "the private key does not belong to the first certificate, which must be the server's own ({why})"
            ),
        }
    }
}

impl std::error::Error for PairError {}

impl Pair {
    /// Reads a chain, the server's own certificate first, and its private key, both as PEM (RFC 7468; keys as PKCS #8,
    /// PKCS #1 or SEC 1).
    ///
    /// # Errors
    /// [`PairError`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates).take(CHAIN_MAX + 1).collect();
        let chain = chain.map_err(|error| PairError::NoCertificate(error.to_string()))?;
        let Some(own) = chain.first() else {
            return Err(PairError::NoCertificate("no certificate section".to_owned()));
        };
        if chain.len() > CHAIN_MAX {
            return Err(PairError::ChainTooLong);
        }
        let validity = validity(own);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            let is_encrypted = key.windows(ENCRYPTED_KEY.len()).any(|window| window == ENCRYPTED_KEY);
            if is_encrypted { PairError::EncryptedKey } else { PairError::NoKey(error.to_string()) }
        })?;
        let signing = default_provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| PairError::UnsupportedKey(error.to_string()))?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|error| PairError::NoPair(error.to_string()))?;
        Ok(Self { certified: Arc::new(certified), validity })
    }

    /// The seconds since 1970 from which on, and up to which, the server's certificate is valid; None when it does not say
    /// so in the usual form.
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
    fn a_certificate_and_its_key_are_a_pair() {
        let (certificate, key) = pem();
        let pair = Pair::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(pair.validity().is_some());
        // Some tools write both into one file.
        let both = format!("{key}{certificate}");
        assert!(Pair::from_pem(both.as_bytes(), both.as_bytes()).is_ok());
    }

    #[test]
    fn each_mistake_is_told_as_what_it_is() {
        let ((certificate, key), (_, other_key)) = (pem(), pem());
        let (certificate, key) = (certificate.as_bytes(), key.as_bytes());
        let refused = |certificate: &[u8], key: &[u8]| Pair::from_pem(certificate, key).unwrap_err();
        assert!(matches!(refused(b"", key), PairError::NoCertificate(_)));
        assert!(matches!(refused(key, key), PairError::NoCertificate(_)));
        assert!(matches!(refused(&certificate[..200], key), PairError::NoCertificate(_)));
        assert!(matches!(refused(certificate, b"no key"), PairError::NoKey(_)));
        assert!(matches!(refused(certificate, certificate), PairError::NoKey(_)));
        assert!(matches!(refused(certificate, other_key.as_bytes()), PairError::NoPair(_)));
        let sealed = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert!(matches!(refused(certificate, sealed), PairError::EncryptedKey));
        let many = certificate.repeat(CHAIN_MAX + 1);
        assert!(matches!(refused(&many, key), PairError::ChainTooLong));
    }
}
