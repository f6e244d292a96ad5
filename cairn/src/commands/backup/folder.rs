//! Folders of backups: `cairn backup to`, `list`, `verify` and `restore`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use argh::{ArgsInfo, FromArgs};
use cairn_api::{SignBackupManifest, SignedImportReport};
use cairn_engine::backup::{
    BackupError, BackupFolder, BackupSummary, Copied, Pruned, copy_into, prune, restore, verify_backups,
};
use cairn_engine::lower_priority;
use serde_json::{Value, json};

use crate::client::{Client, Request, read};
use crate::commands::backup::hold::{Hold, stop_flag};
use crate::commands::data_folder::refuse_within;
use crate::commands::macros::command;
use crate::commands::verify::check_proof;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::output::progress::Progress;
use crate::output::table::{Columns, bytes, record, table, text};
use crate::quantity::{Duration, Whole, counted};
use crate::terminal;
use crate::terminal::plain;

command! {
    /// Back up a running store into a folder. Only what earlier backups in the folder do not have is copied. Run this on the
    /// host of the server, as its user; the folder may be on any file system.
    struct To("to") {
        /// the folder of backups; an empty or missing one is made
        #[argh(positional, arg_name = "folder")]
        folder: String,
        /// keep this many of the newest backups, and remove older ones afterwards (default: keep all)
        #[argh(option, arg_name = "n")]
        keep: Option<Whole<1, 100_000>>,
        /// give up after this time (default: 2h)
        #[argh(option, arg_name = "duration")]
        timeout: Option<Duration>,
    }
}

/// List the backups in a folder, oldest first. Needs no server.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "list", help_triggers("-h", "--help"))]
pub(super) struct List {
    /// the folder of backups
    #[argh(positional, arg_name = "folder")]
    folder: String,
    /// print the list as JSON
    #[argh(switch)]
    json: bool,
}

/// Read everything in a folder of backups, and compare it with the signed manifests. Needs no server. The exit code is 0 if all
/// backups are whole.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "verify", help_triggers("-h", "--help"))]
pub(super) struct Verify {
    /// the folder of backups
    #[argh(positional, arg_name = "folder")]
    folder: String,
    /// the public key that must have signed the manifests (base64; default: any)
    #[argh(option, arg_name = "key")]
    public_key: Option<String>,
    /// print the result as JSON
    #[argh(switch)]
    json: bool,
}

/// Restore a backup into a new data folder. Needs no server. The service starts on it with the same master key.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "restore", help_triggers("-h", "--help"))]
pub(super) struct Restore {
    /// the folder of backups
    #[argh(positional, arg_name = "folder")]
    folder: String,
    /// the new data folder: empty or missing, or a mount point with nothing but other folders
    #[argh(option, arg_name = "folder")]
    data_dir: String,
    /// the name of the backup (default: the newest one; cairn backup list shows all)
    #[argh(option, arg_name = "name")]
    backup: Option<String>,
    /// print the result as JSON
    #[argh(switch)]
    json: bool,
}

const COPIED: Columns<Value> = &[
    ("backup", |shown| text(&shown["backup"])),
    ("shows", |shown| text(&shown["held_at"])),
    ("size", |shown| bytes(&shown["bytes"])),
    ("new", |shown| bytes(&shown["new_bytes"])),
    ("payloads", |shown| text(&shown["payloads"])),
    ("damaged", |shown| text(&shown["damaged"])),
];

impl To {
    pub(super) fn run(&self) -> Outcome {
        let client = self.client()?;
        let stop = stop_flag()?;
        // On the same processors the service has priority.
        lower_priority();
        let hold = Hold::begin(&client, self.timeout)?;
        let (mut backups, copied, signed) = hold.keep_while(|| self.copy(&client, &hold, &stop))?;
        hold.end()?;
        let proof = serde_json::to_value(&signed.proof).map_err(|error| error.to_string())?;
        backups.commit(&copied.name, &proof).map_err(failed)?;
        let manifest = &proof["payload"];
        client.print(manifest, || record(COPIED, manifest))?;
        // With damage in the newest backup, the old ones may have what it lacks.
        damage_of(&copied)?;
        self.remove_old(&mut backups)
    }

    /// Copies a held store. Returns the copy with its signature.
    fn copy(
        &self,
        client: &Client,
        hold: &Hold<'_>,
        stop: &AtomicBool,
    ) -> Result<(BackupFolder, Copied, SignedImportReport), Failure> {
        refuse_within(Path::new(&self.folder), &hold.held.data_dir)?;
        let store_id = hold.store_id()?;
        let mut backups = BackupFolder::open_or_create(Path::new(&self.folder), &store_id).map_err(failed)?;
        let copied = with_progress(stop, |advance| {
            let mut loss = None;
            let copied = copy_into(&mut backups, &hold.held, &mut |done, expected| {
                loss = loss.take().or_else(|| hold.loss());
                loss.is_none() && advance(done, expected)
            });
            loss.map_or(copied.map_err(failed), Err)
        })?;
        // Signed before the end, and written after it: a manifest says that everything was kept until the copy was complete.
        let request = SignBackupManifest { manifest: copied.manifest.clone() };
        let signed = read(&client.call(&Request::post("/api/v1/verify/backups").json(&request))?)?;
        Ok((backups, copied, signed))
    }

    fn remove_old(&self, backups: &mut BackupFolder) -> Outcome {
        let Some(Whole(keep)) = self.keep else { return Ok(()) };
        let Pruned { backups: count, bytes: freed } =
            prune(backups, usize::try_from(keep).unwrap_or(usize::MAX)).map_err(failed)?;
        if count > 0 && !self.json {
            output::print(&format!("{} removed, {} freed\n", counted(count, "old backup"), bytes(&freed)))?;
        }
        Ok(())
    }
}

/// Fails if something was damaged in the store: the backup has everything else.
fn damage_of(copied: &Copied) -> Outcome {
    if copied.damaged_count == 0 {
        return Ok(());
    }
    let were = crate::quantity::were(copied.damaged_count, "payload");
    let mut message = format!("{were} damaged in the store; the backup has everything else");
    for damaged in &copied.damaged {
        message += &format!("\n  {}", plain(damaged));
    }
    Err((message + "\n  cairn verify store shows the objects").into())
}

fn failed(error: BackupError) -> Failure {
    plain(&error.to_string()).into()
}

/// Runs something with a progress bar, until a signal arrives.
fn with_progress<T>(
    stop: &AtomicBool,
    run: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let progress = Progress::bytes(1);
    let mut before = 0;
    let done = run(&mut |done, expected| {
        progress.expect(expected);
        progress.add(done.saturating_sub(before));
        before = done;
        !stop.load(Ordering::Relaxed)
    });
    match done {
        Err(Failure::Failed(message)) if stop.load(Ordering::Relaxed) => Err(Failure::Interrupted(message)),
        done => done,
    }
}

const LISTED: Columns<BackupSummary> = &[
    ("backup", |backup| backup.name.clone()),
    ("shows", |backup| match backup.damage {
        Some(_) => "damaged".to_owned(),
        None => plain(&backup.held_at),
    }),
    ("size", |backup| bytes(&backup.proof["payload"]["bytes"])),
    ("new", |backup| bytes(&backup.proof["payload"]["new_bytes"])),
];

impl List {
    pub(super) fn run(&self) -> Outcome {
        let backups = BackupFolder::open(Path::new(&self.folder)).map_err(failed)?;
        let backups = backups.backups().map_err(failed)?;
        output::print(&if self.json {
            let manifests = backups.iter().map(|backup| match &backup.damage {
                Some(damage) => json!({"backup": backup.name, "unreadable": damage}),
                None => backup.proof["payload"].clone(),
            });
            terminal::json(&json!({"backups": manifests.collect::<Vec<_>>()}))
        } else {
            table(LISTED, &backups)
        })
    }
}

const VERIFIED: Columns<Value> = &[
    ("backups", |found| found["backups"].as_array().map_or(0, Vec::len).to_string()),
    ("size read", |found| bytes(&found["bytes"])),
    ("pages and payloads", |found| text(&found["blobs"])),
    ("damaged", |found| text(&found["damaged"])),
];

/// Advice after damage that the next backup knows of.
const COPIED_AGAIN: &str = "the next `cairn backup to` copies again what is damaged, if the store still has it; \
     if the disk is failing, back up into a new folder on another one";
/// Advice after damage that could not be written down.
const NOT_NOTED: &str = "back up into a new folder: what is damaged could not be noted in this one";

impl Verify {
    /// Prints what was found. Fails if a backup is not whole, or not signed.
    pub(super) fn run(&self) -> Outcome {
        let stop = stop_flag()?;
        let mut backups = BackupFolder::open(Path::new(&self.folder)).map_err(failed)?;
        let verified = with_progress(&stop, |advance| verify_backups(&mut backups, advance).map_err(failed))?;
        let mut wrong = vec!["not all backups are whole".to_owned()];
        let mut shown = Vec::new();
        for ((name, reason), backup) in verified.backups.iter().zip(backups.backups().map_err(failed)?) {
            let signature = check_proof(&backup.proof, self.public_key.as_deref()).err();
            let reason = reason.clone().or_else(|| signature.map(|reason| format!("signature: {reason}")));
            if let Some(reason) = &reason {
                wrong.push(plain(&format!("{name}: {reason}")));
            }
            shown.push(json!({"backup": name, "whole": reason.is_none(), "reason": reason}));
        }
        let found = json!({
            "backups": shown, "bytes": verified.bytes, "blobs": verified.blobs, "damaged": verified.damaged,
        });
        output::print(&if self.json { terminal::json(&found) } else { record(VERIFIED, &found) })?;
        let are_whole = wrong.len() == 1;
        if are_whole && (verified.is_noted || verified.damaged == 0) {
            return Ok(());
        }
        if are_whole {
            wrong = vec!["all backups are whole, but the next one would use what is damaged".to_owned()];
        }
        if verified.damaged > 0 {
            wrong.push((if verified.is_noted { COPIED_AGAIN } else { NOT_NOTED }).to_owned());
        }
        Err(wrong.join("\n  ").into())
    }
}

const RESTORED: Columns<Value> = &[
    ("backup", |found| text(&found["backup"])),
    ("shows", |found| text(&found["held_at"])),
    ("size written", |found| bytes(&found["bytes"])),
    ("payloads", |found| text(&found["payloads"])),
    ("damaged payloads", |found| text(&found["damaged"])),
];

impl Restore {
    /// Prints what was restored. Fails if a payload is damaged in the backup.
    pub(super) fn run(&self) -> Outcome {
        let stop = stop_flag()?;
        let backups = BackupFolder::open(Path::new(&self.folder)).map_err(failed)?;
        let backup = backups.backup(self.backup.as_deref()).map_err(failed)?;
        check_proof(&backup.proof, None)
            .map_err(|reason| format!("the manifest of {} is not signed: {reason}", plain(&backup.name)))?;
        let data_dir = Path::new(&self.data_dir);
        let restored =
            with_progress(&stop, |advance| restore(&backups, &backup, data_dir, advance).map_err(failed))?;
        let found = json!({
            "backup": backup.name, "held_at": backup.held_at, "bytes": restored.bytes, "files": restored.files,
            "payloads": restored.payloads, "damaged": restored.damaged_count, "damaged_payloads": restored.damaged,
        });
        output::print(&if self.json { terminal::json(&found) } else { record(RESTORED, &found) })?;
        match restored.damaged_count {
            0 => Ok(()),
            count => Err(format!(
                "{} damaged in the backup; everything else was restored\n  cairn verify store shows the objects",
                crate::quantity::were(count, "payload")
            )
            .into()),
        }
    }
}
