//! The upgrade of a running store, after a trial.

use crate::check::inspect::{Finding, FindingKind, Inspecting, begin};
use crate::error::EngineError;
use crate::format::format_version::FORMAT_VERSION;
use crate::limits::INSPECTION_ENTRIES_MAX;
use crate::store::Store;
use crate::store::background::Cancel;
use std::sync::Arc;

/// The result of an upgrade or of its trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The format version that the store had.
    pub from: u32,
    /// The format version that it has now.
    pub to: u32,
    /// Number of records that the trial has read.
    pub entries_examined: u64,
}

impl Store {
    /// Starts an upgrade on a thread of its own: first the trial, an inspection of the whole store, then, with `apply`, the
    /// change of the format version. Dropping the future ends the trial.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] while an inspection or repair is running, [`EngineError::ShuttingDown`]; later
    /// [`EngineError::UpgradeRefused`] if the trial fails, and failures of the device.
    pub fn begin_upgrade(self: &Arc<Self>, apply: bool) -> Result<Inspecting<Upgrade>, EngineError> {
        begin(self, move |store, cancel| upgrade(store, cancel, apply))
    }
}

fn upgrade(store: &Store, cancel: &Cancel, apply: bool) -> Result<Upgrade, EngineError> {
    let from = store.format_version();
    let mut done = Upgrade { from, to: from, entries_examined: 0 };
    if from == FORMAT_VERSION {
        return Ok(done);
    }
    store.disk.measure();
    if store.disk.is_low() {
        let why = "less space is free than the reserve (storage.reserve_bytes): make room first";
        return Err(EngineError::UpgradeRefused(why.to_owned()));
    }
    let found = store.inspect_until(INSPECTION_ENTRIES_MAX, cancel)?;
    done.entries_examined = found.entries_examined;
    // Space that no record owns is no damage: the repair frees it, in any format version.
    let is_damage = |finding: &&Finding| finding.kind != FindingKind::OrphanedSpace;
    if let Some(first) = found.findings.iter().find(is_damage) {
        let (kind, detail) = (first.kind.name(), &first.detail);
        return Err(EngineError::UpgradeRefused(format!(
            "the inspection of the store found {kind}: {detail}: see `cairn storage inspect`"
        )));
    }
    if !found.complete {
        let why = "the inspection could not read everything: try again when less is written";
        return Err(EngineError::UpgradeRefused(why.to_owned()));
    }
    cancel.check()?;
    if apply {
        store.raise_format()?;
        tracing::info!(target: "service::engine", from, to = FORMAT_VERSION, "the store was upgraded");
        done.to = FORMAT_VERSION;
    }
    Ok(done)
}
