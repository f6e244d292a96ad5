//! What an error of the HTTP client says about the connection.

use ureq::{Error, Timeout};

/// Returns the error of the TLS library, if there is one.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Rustls(error) => Some(error),
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Returns whether the server's certificate was not accepted.
pub(super) fn is_about_trust(error: &Error) -> bool {
    matches!(tls_error(error), Some(rustls::Error::InvalidCertificate(_)))
}

/// Returns whether no trusted authority signed the server's certificate.
pub(super) fn has_unknown_issuer(error: &Error) -> bool {
    matches!(
        tls_error(error),
        Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
    )
}

/// Returns whether the server answered the first message of TLS with something else.
pub(super) fn is_without_tls(error: &Error) -> bool {
    matches!(tls_error(error), Some(rustls::Error::InvalidMessage(_)))
}

/// Returns whether the error occurred before the request was sent.
pub(super) fn was_not_sent(error: &Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    if is_about_trust(error) || is_without_tls(error) {
        return true;
    }
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) => true,
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => true,
        Error::Io(error) => matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable),
        _ => false,
    }
}
