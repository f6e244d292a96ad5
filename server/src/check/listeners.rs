//! Checks whether the service could listen on its addresses now.

use super::Finding;
use crate::config::{BindAddress, Key, Settings, keys};
use crate::host::port::{self, PortError};

pub(super) fn data(settings: &Settings) -> Finding {
    listener(settings, &keys::S3_BIND, &settings.server.s3_bind)
}

pub(super) fn management(settings: &Settings) -> Finding {
    listener(settings, &keys::API_BIND, &settings.server.api_bind)
}

pub(super) fn console(settings: &Settings) -> Finding {
    match &settings.server.console_bind {
        Some(bind) => listener(settings, &keys::CONSOLE_BIND, bind),
        None => Finding::ok(format!("off ({})", settings.values.source(&keys::CONSOLE_ENABLED))),
    }
}

fn listener(settings: &Settings, key: &Key, bind: &BindAddress) -> Finding {
    let (source, address) = (settings.values.source(key), bind.address);
    let shown = if bind.text == address.to_string() {
        bind.text.clone()
    } else {
        format!("{} ({address})", bind.text)
    };
    let Err(error) = port::try_listen(address) else { return Finding::ok(format!("{shown} is free")) };
    let error = PortError::new(address, source.clone(), error).shown_as(shown.clone());
    // The running server may use other ports, so it is unknown which process has this one.
    if error.is_in_use() && cairn_engine::preflight_lock(&settings.server.data_dir).unwrap_or(false) {
        return Finding::warning(
            format!("{shown} is in use, perhaps by the server that is running on this data folder"),
            format!(
                "find out which program uses it (`ss -ltnp`); if it is not Cairn, stop it or set {source} to another port"
            ),
        );
    }
    Finding::failed(error.message(), error.fix())
}
