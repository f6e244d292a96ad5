//! Checks the store in the data folder: its format, its lock, its commit logs and its master key.

use super::Finding;
use crate::config::{Settings, keys};

pub(super) fn store(settings: &Settings) -> Finding {
    let data_dir = &settings.server.data_dir;
    let facts = match cairn_engine::preflight_store(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(None) => return Finding::ok("none yet: the first start creates one"),
        Ok(Some(facts)) => facts,
    };
    let user = match cairn_engine::preflight_lock(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(true) => "a running server has it open",
        Ok(false) => "no server has it open",
    };
    Finding::ok(format!("format {}, {} slices; {user}", facts.format_version, facts.slices))
}

pub(super) fn commit_logs(settings: &Settings) -> Finding {
    let data_dir = &settings.server.data_dir;
    match cairn_engine::preflight_store(data_dir) {
        Err(_) => return unreadable(),
        Ok(None) => return Finding::ok("none yet: the first start creates them"),
        Ok(Some(_)) => {}
    }
    match cairn_engine::preflight_lock(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(true) => return Finding::ok("not read: a running server has the store open"),
        Ok(false) => {}
    }
    let damaged = match cairn_engine::preflight_commit_logs(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(damaged) => damaged,
    };
    let Some((folder, log)) = damaged.first() else { return Finding::ok("whole") };
    Finding::failed(
        format!("{}: {}; {} damaged in all", folder.display(), log.what, damaged.len()),
        format!(
            "restore a backup; without one, `cairn storage discard-log --data-dir {}` shows what giving them up would lose",
            data_dir.display()
        ),
    )
}

pub(super) fn master_key(settings: &Settings) -> Finding {
    let data_dir = &settings.server.data_dir;
    match cairn_engine::preflight_store(data_dir) {
        Err(_) => return unreadable(),
        Ok(None) => return Finding::ok("the new store will be bound to it permanently"),
        Ok(Some(_)) => {}
    }
    let key = settings.auth.credential_master_key.expose();
    match cairn_engine::preflight_master_key(data_dir, key.as_bytes()) {
        Ok(()) => Finding::ok("matches the store"),
        Err(error) => Finding::failed(
            error.to_string(),
            format!(
                "set {} to the key that the store was created with",
                settings.values.source(&keys::MASTER_KEY)
            ),
        ),
    }
}

fn unreadable() -> Finding {
    Finding::warning("cannot be checked because the store cannot be read", "fix the store first")
}
