//! The bodies of this crate's fuzz targets in `fuzz/`.
//!
//! `cargo test` runs them on the stored corpora and on mutations of these.

use std::net::IpAddr;

use crate::destination::{Host, TargetPolicy, TargetUrl, check_at_creation};

/// A function that a fuzz target calls with its input. It panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate with the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("webhook_target", webhook_target)];

/// Takes a URL. The client's own parser finds the same host and port in its canonical form, which is parsed to the same target.
/// No literal address that the standard library calls anything special is allowed by default.
///
/// # Panics
/// Panics when a property does not hold.
pub fn webhook_target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let target = match TargetUrl::parse(text) {
        Ok(target) => target,
        Err(error) => return assert!(error.to_string().len() < 256),
    };
    let canonical = target.to_string();
    let again = TargetUrl::parse(&canonical).expect("the canonical form is valid");
    assert_eq!(
        (again.to_string(), again.port, again.scheme),
        (canonical.clone(), target.port, target.scheme)
    );
    assert!(canonical.bytes().all(|byte| byte.is_ascii_graphic()), "{canonical}");
    assert_eq!(target.uri.host().map(str::to_owned), Some(target.host.to_string()));
    let default_port = if target.is_https() { 443 } else { 80 };
    assert_eq!(target.uri.port_u16().unwrap_or(default_port), target.port);
    assert!(!target.uri.authority().is_none_or(|authority| authority.as_str().contains('@')));

    let policy = TargetPolicy { allow_http: true, ..TargetPolicy::default() };
    if let (Host::Address(address), Ok(_)) = (&target.host, check_at_creation(text, &policy)) {
        assert!(is_public(*address), "{address}");
    }
}

/// Returns whether the standard library takes an address for a public one.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_unspecified()
                || v4.is_multicast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
