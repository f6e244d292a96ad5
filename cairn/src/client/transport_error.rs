//! Classifies errors of the HTTP client by their cause.

use ureq::{Error, Timeout};

use crate::terminal::plain;

/// Returns the error of the TLS library, if there is one.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Rustls(error) => Some(error),
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Reasons for which the server's TLS is not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TrustFailure {
    /// It does not speak TLS.
    WithoutTls,
    /// No trusted authority signed the certificate.
    UnknownIssuer,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for other names.
    WrongName,
    /// The certificate is that of an authority. The TLS library accepts it only as an issuer.
    IsAuthority,
    /// The certificate was not accepted for another reason.
    Other,
}

impl TrustFailure {
    /// Returns what to do, where that does not depend on the command: a clause without capital and stop.
    pub(crate) fn remedy(self) -> Option<&'static str> {
        match self {
            Self::WithoutTls | Self::UnknownIssuer => None,
            Self::Expired => Some("renew the certificate, and check the clock of this computer"),
            Self::NotYetValid => Some("check the clock of this computer"),
            Self::WrongName => Some(
                "use the name in the certificate as the address, or have a certificate made with this name",
            ),
            Self::IsAuthority => Some("make a certificate for the server, with basicConstraints=CA:FALSE"),
            Self::Other => Some("have a certificate made that clients accept"),
        }
    }

    /// Returns what is wrong, and what to do. `error` is where it was found, `url` the address of the server, and `authorities`
    /// the variable that names the file of trusted authorities.
    pub(crate) fn text(self, error: &Error, url: &str, authorities: &str) -> String {
        let mut text = format!("the certificate of {url} was not accepted: {}", error_text(error));
        match self {
            Self::WithoutTls => {
                let plain_url = url.replacen("https", "http", 1);
                text = format!(
                    "{url} does not use TLS: a server without a certificate has the address {plain_url}"
                );
            }
            Self::UnknownIssuer => {
                let own = "if it was signed by your own certificate authority";
                text += &format!("\n  {own}, set {authorities} to its PEM file");
            }
            other => text.extend(other.remedy().map(|remedy| format!("\n  {remedy}"))),
        }
        text
    }
}

/// Returns what is wrong with the server's TLS, if that is the error.
pub(crate) fn trust_failure(error: &Error) -> Option<TrustFailure> {
    use rustls::CertificateError as Certificate;
    let found = match tls_error(error)? {
        rustls::Error::InvalidCertificate(found) => found,
        // The server answered the first message of TLS with something else.
        rustls::Error::InvalidMessage(_) => return Some(TrustFailure::WithoutTls),
        _ => return None,
    };
    Some(match found {
        // An authority of the same name, but with another key, leads to a bad signature.
        Certificate::UnknownIssuer | Certificate::BadSignature => TrustFailure::UnknownIssuer,
        Certificate::Expired | Certificate::ExpiredContext { .. } => TrustFailure::Expired,
        Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => TrustFailure::NotYetValid,
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => TrustFailure::WrongName,
        // The library has no variant of its own for it.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => TrustFailure::IsAuthority,
        _ => TrustFailure::Other,
    })
}

/// Returns the error as text for people.
pub(crate) fn error_text(error: &Error) -> String {
    let text = error.to_string();
    plain(text.strip_prefix("io: ").unwrap_or(&text))
}

/// Returns whether the name of the server has no address.
pub(crate) fn has_no_address(error: &Error) -> bool {
    match error {
        Error::HostNotFound => true,
        // The standard library has no kind for errors of getaddrinfo(3).
        Error::Io(error) => error.to_string().contains("failed to lookup address"),
        _ => false,
    }
}

/// Returns whether the error occurred before the request was sent.
pub(crate) fn was_not_sent(error: &Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    if trust_failure(error).is_some() || has_no_address(error) {
        return true;
    }
    match error {
        Error::ConnectionFailed | Error::BadUri(_) => true,
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => true,
        Error::Io(error) => matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable),
        _ => false,
    }
}
