//! What is in the data folder: a store of a known format, whose master key is the one configured, used by one server.

use super::Seen;
use crate::config::{Settings, keys};

pub(super) fn store(settings: &Settings) -> Seen {
    let data_dir = &settings.server.data_dir;
    let facts = match cairn_engine::examine_store(data_dir) {
        Err(error) => return Seen::refused(error),
        Ok(None) => return Seen::ok("none yet: the first start makes one"),
        Ok(Some(facts)) => facts,
    };
    let user = match cairn_engine::examine_lock(data_dir) {
        Err(error) => return Seen::refused(error),
        Ok(true) => "a running server has it open",
        Ok(false) => "no server has it open",
    };
    Seen::ok(format!("format {}, {} slices; {user}", facts.format_version, facts.slices))
}

pub(super) fn master_key(settings: &Settings) -> Seen {
    let data_dir = &settings.server.data_dir;
    match cairn_engine::examine_store(data_dir) {
        Err(_) => return Seen::warning("nothing to compare it with", "mend the store first"),
        Ok(None) => return Seen::ok("the store that is made will need it for ever"),
        Ok(Some(_)) => {}
    }
    let key = settings.auth.credential_master_key.expose();
    match cairn_engine::examine_master_key(data_dir, key.as_bytes()) {
        Ok(()) => Seen::ok("it is the key of the store"),
        Err(error) => Seen::failed(
            error.to_string(),
            format!(
                "set {} to the key that the store was made with",
                settings.values.source(&keys::MASTER_KEY)
            ),
        ),
    }
}
