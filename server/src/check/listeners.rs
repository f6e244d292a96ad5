//! The addresses: whether the service could listen on them now.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::Seen;
use crate::config::{BindAddress, Key, Settings, keys};

pub(super) fn data(settings: &Settings) -> Seen {
    listener(settings, &keys::S3_BIND, &settings.server.s3_bind)
}

pub(super) fn management(settings: &Settings) -> Seen {
    listener(settings, &keys::API_BIND, &settings.server.api_bind)
}

fn listener(settings: &Settings, key: &Key, bind: &BindAddress) -> Seen {
    let (source, address) = (settings.values.source(key), bind.address);
    let shown = if bind.text == address.to_string() {
        bind.text.clone()
    } else {
        format!("{} ({address})", bind.text)
    };
    let Err(error) = TcpListener::bind(address) else { return Seen::ok(format!("{shown} is free")) };
    // Whose port it is cannot be told: that server may have another one.
    if error.kind() == ErrorKind::AddrInUse
        && cairn_engine::examine_lock(&settings.server.data_dir).unwrap_or(false)
    {
        return Seen::warning(
            format!(
                "{shown} is taken; a server runs on this data folder, and it may be its port or another's"
            ),
            format!(
                "see whose it is (`ss -ltnp`); if another program's, end that or set {source} to another port"
            ),
        );
    }
    let mend = match error.kind() {
        ErrorKind::AddrInUse => {
            format!("end the other program (`ss -ltnp` shows it), or set {source} to another port")
        }
        ErrorKind::AddrNotAvailable => format!("set {source} to an address of this host, or to 0.0.0.0"),
        ErrorKind::PermissionDenied => {
            format!("set {source} to a port from 1024 on, or give the service CAP_NET_BIND_SERVICE")
        }
        _ => format!("set {source} to another address"),
    };
    Seen::failed(format!("cannot listen on {shown}: {error}"), mend)
}
