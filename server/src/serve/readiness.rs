//! Readiness checks of the subsystems: one line for each subsystem that `/ready` reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_admin::{SubsystemProbes, SubsystemProbesBuilder};
use cairn_engine::{DiskState, EventQuery, Store};
use cairn_net::Drain;
use cairn_webhooks::Webhooks;

use super::subsystems::Subsystems;
use crate::certificates::Certificates;
use crate::error::ServeError;

/// Starts the threads that check the subsystems. `events` says whether events are recorded.
pub(super) fn watch(
    Subsystems { store, audit, directory, webhooks, sharing }: Subsystems,
    events: bool,
    drain: &Drain,
    certificates: Certificates,
    executors_serve: &Arc<AtomicBool>,
) -> Result<SubsystemProbes, ServeError> {
    let (storage, metadata, disk) = (Arc::clone(&store), Arc::clone(&store), Arc::clone(&store));
    let (executors_serve, lifecycle) = (Arc::clone(executors_serve), Arc::clone(&store));
    let (integrity, drain) = (Arc::clone(&store), drain.clone());
    let listening = move || check_listeners(executors_serve.load(Ordering::Acquire), drain.is_begun());
    let mut probes = SubsystemProbesBuilder::default()
        .with_probe("storage", move || storage.check_storage())
        .with_probe("metadata", move || metadata.check_metadata())
        .with_probe("audit", move || audit.check())
        .with_probe("identity", move || directory.health())
        .with_probe("sharing", move || sharing.health());
    if events {
        probes = probes.with_probe("events", move || check_events(&store, &webhooks));
    }
    probes
        .with_flag("listeners", listening)
        .with_notice("disk", move || disk_notice(disk.disk_state()))
        .with_notice("integrity", move || {
            integrity_notice(integrity.corruptions(), integrity.scrub().record().last_corrupt)
        })
        .with_notice("lifecycle", move || lifecycle.lifecycle_status().paused)
        .with_notice("certificates", move || certificates.notice())
        .start()
        .map_err(ServeError::Threads)
}

/// Events can be read, and webhooks can be changed and delivered.
fn check_events(store: &Store, webhooks: &Webhooks) -> Result<(), String> {
    let query = EventQuery { limit: 1, ..EventQuery::default() };
    store.events(&query).map_err(|error| error.to_string())?;
    webhooks.health()
}

/// Connections of an executor that does not serve yet wait, and those that come during a shutdown are closed.
fn check_listeners(executors_serve: bool, drain_is_begun: bool) -> Result<(), String> {
    match (executors_serve, drain_is_begun) {
        (_, true) => Err("the service is shutting down".to_owned()),
        (false, false) => Err("an executor has not started yet".to_owned()),
        (true, false) => Ok(()),
    }
}

/// Returns what an operator must know about the disk's free space.
fn disk_notice(state: DiskState) -> Option<String> {
    match state {
        DiskState::Ok => None,
        DiskState::Low => Some(
            "disk space is low; delete objects or enlarge the file system before writes are refused"
                .to_owned(),
        ),
        DiskState::Refusing => Some(
            "writes are refused, because the disk is full; delete objects or enlarge the file system"
                .to_owned(),
        ),
    }
}

/// Returns what an operator must know about damage: how often stored data failed its check since the start, and how many
/// versions the last whole scrub found damaged. It is public, so it names no object.
fn integrity_notice(failed_checks: u64, damaged_in_scrub: u64) -> Option<String> {
    if failed_checks == 0 && damaged_in_scrub == 0 {
        return None;
    }
    let mut found = Vec::new();
    if failed_checks > 0 {
        let times = if failed_checks == 1 { "once".to_owned() } else { format!("{failed_checks} times") };
        found.push(format!("stored data failed its check {times} since the start"));
    }
    if damaged_in_scrub > 0 {
        let versions = if damaged_in_scrub == 1 { "version" } else { "versions" };
        found.push(format!("the last whole scrub found {damaged_in_scrub} damaged {versions}"));
    }
    Some(format!(
        "{}; damaged data is not served. `cairn audit list --operation storage.damage` names the objects: write them again \
         from a copy, or delete them; then `cairn verify store` shows whether anything else is damaged",
        found.join(", and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cairn status` said only that the server was ready after damage had been found.
    #[test]
    fn damage_is_told_with_what_to_do() {
        assert_eq!(integrity_notice(0, 0), None);
        let once = integrity_notice(1, 0).expect("a notice");
        assert!(
            once.starts_with("stored data failed its check once since the start; damaged data"),
            "{once}"
        );
        let both = integrity_notice(7, 2).expect("a notice");
        assert!(both.contains("7 times since the start, and the last whole scrub found 2 damaged versions;"));
        assert!(both.contains("`cairn audit list --operation storage.damage`"));
    }

    #[test]
    fn listeners_are_ready_between_the_start_of_all_executors_and_the_shutdown() {
        assert!(check_listeners(false, false).unwrap_err().contains("executor"));
        assert_eq!(check_listeners(true, false), Ok(()));
        assert!(check_listeners(true, true).unwrap_err().contains("shutting down"));
        assert!(check_listeners(false, true).unwrap_err().contains("shutting down"));
    }
}
