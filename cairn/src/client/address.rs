//! The address of a management plane.

use std::str::FromStr;

use ureq::http::Uri;

use crate::environment::ENDPOINT_VARIABLE;
use crate::failure::Failure;

/// The default address of a server on this host.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7601";

/// The address of a management plane: `http://host:port` or `https://host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address(pub(super) String);

impl Address {
    /// Returns the address of `--endpoint`, or else of the environment, or else of a server on this host.
    pub(crate) fn chosen(option: Option<&Self>) -> Result<Self, Failure> {
        if let Some(address) = option {
            return Ok(address.clone());
        }
        match std::env::var_os(ENDPOINT_VARIABLE).filter(|text| !text.is_empty()) {
            None => Ok(Self(DEFAULT_ENDPOINT.to_owned())),
            Some(text) => text
                .to_str()
                .unwrap_or_default()
                .parse()
                .map_err(|error| Failure::WrongUsage(format!("{ENDPOINT_VARIABLE}: {error}"))),
        }
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected an address such as http://127.0.0.1:7601";
        let base = text.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|_| FORM)?;
        let authority = uri.authority().ok_or(FORM)?;
        let host_and_port = authority.port_u16().map(|port| format!("{}:{port}", authority.host()));
        let is_whole = host_and_port.as_deref().unwrap_or(authority.host()) == authority.as_str();
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        if is_known && uri.path() == "/" && uri.query().is_none() && is_whole {
            Ok(Self(base.to_owned()))
        } else {
            Err(FORM)
        }
    }
}
