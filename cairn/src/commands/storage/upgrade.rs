//! `cairn storage upgrade`: raises the format version of the store, of a running server or of a stopped one.

use std::path::Path;

use cairn_api::{FormatChange, StorageUpgrade, UpgradeStorage};
use cairn_engine::{FORMAT_VERSION, format_changes, upgrade_stopped_store};

use crate::client::{Request, read};
use crate::commands::macros::command;
use crate::failure::Outcome;
use crate::output;
use crate::terminal::{json, plain};

command! {
    /// Raise the format version of a running server's store to the latest, after an inspection of the whole store. Programs
    /// before that version cannot open the store afterwards, and there is no way back. With --data-dir, upgrade a stopped
    /// store, whose format may be too old to be run; this needs no secrets.
    struct Upgrade("upgrade") {
        /// only try the upgrade, and show what would change
        #[argh(switch)]
        dry_run: bool,
        /// the data folder of a stopped store
        #[argh(option, arg_name = "folder")]
        data_dir: Option<String>,
    }
}

impl Upgrade {
    pub(crate) fn run(&self) -> Outcome {
        if let Some(data_dir) = &self.data_dir {
            let done = self.upgrade_stopped(Path::new(data_dir))?;
            return output::print(&if self.json { document(&done)? } else { text(&done) });
        }
        let client = self.client()?;
        let request = UpgradeStorage { dry_run: Some(self.dry_run) };
        let body = client.call(&Request::post("/api/v1/storage/upgrade").json(&request).long_running())?;
        let done: StorageUpgrade = read(&body)?;
        client.print(&body, || text(&done))
    }

    fn upgrade_stopped(&self, data_dir: &Path) -> Result<StorageUpgrade, String> {
        cairn_server::restrict_new_files();
        let from = upgrade_stopped_store(data_dir, !self.dry_run).map_err(|error| error.to_string())?;
        let change =
            |(version, what): (u32, &str)| FormatChange { format_version: version, adds: what.to_owned() };
        Ok(StorageUpgrade {
            dry_run: self.dry_run,
            format_version_before: from,
            format_version: if self.dry_run { from } else { FORMAT_VERSION },
            format_version_latest: FORMAT_VERSION,
            entries_examined: 0,
            changes: format_changes(from).map(change).collect(),
        })
    }
}

fn document(done: &StorageUpgrade) -> Result<String, String> {
    serde_json::to_value(done).map(|value| json(&value)).map_err(|error| error.to_string())
}

fn text(done: &StorageUpgrade) -> String {
    let (from, latest) = (done.format_version_before, done.format_version_latest);
    if from == latest {
        return format!("the store has format version {latest} already; nothing was changed\n");
    }
    let mut text = if done.dry_run {
        format!("the trial has passed: an upgrade raises the format version from {from} to {latest}\n")
    } else {
        format!("the format version was raised from {from} to {latest}\n")
    };
    for FormatChange { format_version, adds } in &done.changes {
        text.push_str(&plain(&format!("  version {format_version} adds {adds}")));
        text.push('\n');
    }
    text.push_str(if done.dry_run {
        "Nothing was changed. After an upgrade, earlier programs cannot open the store, and there is no way back.\n"
    } else {
        "Earlier programs cannot open the store any more.\n"
    });
    text
}
