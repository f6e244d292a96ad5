//! Checks the store in the data folder: its format, its lock, its commit logs and its master key.

use std::path::Path;

use cairn_engine::{FORMAT_VERSION, FORMAT_VERSION_MIN, format_changes};

use super::Finding;
use crate::config::{Settings, keys};
use crate::error::no_store;

pub(super) fn store(settings: &Settings) -> Finding {
    let data_dir = &settings.server.data_dir;
    let facts = match cairn_engine::preflight_store(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(None) if !settings.storage.create_store => return Finding::refused(no_store(data_dir)),
        Ok(None) => return Finding::ok("none yet: the first start creates one"),
        Ok(Some(facts)) => facts,
    };
    let user = match cairn_engine::preflight_lock(data_dir) {
        Err(error) => return Finding::refused(error),
        Ok(true) => "a running server has it open",
        Ok(false) => "no server has it open",
    };
    let found = facts.format_version;
    let described = format!("format {found}, {} slices; {user}", facts.slices);
    if found < FORMAT_VERSION_MIN {
        let message = format!(
            "{described}; this program runs formats {FORMAT_VERSION_MIN} to {FORMAT_VERSION}; {}",
            effect_of_upgrade(found)
        );
        return Finding::failed(message, format!("`{}` upgrades it", upgrade_command(data_dir)));
    }
    if found == FORMAT_VERSION {
        return Finding::ok(described);
    }
    Finding::ok(format!(
        "{described}; it stays at this format until an upgrade; {}",
        effect_of_upgrade(found)
    ))
}

fn upgrade_command(data_dir: &Path) -> String {
    format!("cairn storage upgrade --data-dir {}", data_dir.display())
}

/// Says what `cairn storage upgrade` would change.
fn effect_of_upgrade(found: u32) -> String {
    let added: Vec<_> = format_changes(found).map(|(_, what)| what).collect();
    format!(
        "`cairn storage upgrade` would raise it to format {FORMAT_VERSION}, which adds {}; programs before that format could \
         not open the store any more, and there is no way back",
        added.join("; ")
    )
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
