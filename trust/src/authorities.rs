//! Certificate authorities.

use ureq::tls::{PemItem, parse_pem};

/// Certificate authorities that the certificates of servers are checked against.
#[derive(Clone, Default, Debug)]
pub enum Authorities {
    /// Those of the host, or of the file that `SSL_CERT_FILE` names.
    #[default]
    Host,
    /// Only these, in DER.
    Only(Vec<Vec<u8>>),
}

/// The reason why a text has no usable certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnusablePem {
    /// It contains no certificate in PEM.
    Empty,
    /// A certificate cannot be read: why.
    Invalid(String),
}

impl Authorities {
    /// Reads certificates in PEM (RFC 7468). Other items, such as keys, are skipped.
    ///
    /// # Errors
    /// [`UnusablePem`].
    pub fn of_pem(pem: &[u8]) -> Result<Self, UnusablePem> {
        let found: Result<Vec<_>, _> = parse_pem(pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate.der().to_vec())),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
            .collect();
        match found {
            Ok(found) if found.is_empty() => Err(UnusablePem::Empty),
            Ok(found) => Ok(Self::Only(found)),
            Err(error) => Err(UnusablePem::Invalid(error.to_string())),
        }
    }
}

/// Counts the certificates of the host's authorities, which [`Authorities::Host`] trusts.
///
/// # Errors
/// None could be read: the reasons.
pub fn count_host_authorities() -> Result<usize, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(if reasons.is_empty() { "no file has any".to_owned() } else { reasons.join("; ") });
    }
    Ok(found.certs.len())
}

#[cfg(test)]
mod tests {
    use super::{Authorities, UnusablePem};

    #[test]
    fn certificates_are_read_and_other_texts_are_refused() {
        let made = rcgen::generate_simple_self_signed(["example.com".to_owned()]).expect("a certificate");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let Ok(Authorities::Only(found)) = Authorities::of_pem(format!("{key}{certificate}").as_bytes())
        else {
            panic!("one certificate");
        };
        assert_eq!(found, [made.cert.der().to_vec()]);
        for empty in ["", "text", &key] {
            assert_eq!(Authorities::of_pem(empty.as_bytes()).err(), Some(UnusablePem::Empty), "{empty}");
        }
        let cut = certificate.replace("-----END", "");
        assert!(matches!(Authorities::of_pem(cut.as_bytes()), Err(UnusablePem::Invalid(_))));
    }
}
