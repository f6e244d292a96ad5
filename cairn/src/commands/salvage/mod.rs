//! `cairn salvage`: writes the intact objects of a damaged, stopped store as files.

mod file_name;
mod folder;
mod lines;

use std::path::Path;

use cairn_engine::{DamagedStore, OpenError};
use serde_json::json;

use crate::commands::data_folder::refuse_within;
use crate::environment::MASTER_KEY_VARIABLE;
use crate::failure::Outcome;
use crate::quantity::counted;
use crate::{output, terminal};
use folder::{Counts, SalvageFolder};

/// Write every intact object of a damaged, stopped store as files into a new folder, with a list of them (manifest.jsonl) and
/// of all that is lost (damaged.jsonl). The store is only read. The exit code is 1 if anything is lost. Encrypted objects need
/// the master key, in SERVICE_CREDENTIAL_MASTER_KEY or in the file that SERVICE_CREDENTIAL_MASTER_KEY_FILE names.
#[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
#[argh(subcommand, name = "salvage", help_triggers("-h", "--help"))]
pub(crate) struct Salvage {
    /// the data folder of a stopped store
    #[argh(option, arg_name = "folder")]
    data_dir: String,
    /// the folder that is created for the files; it may exist if it is empty
    #[argh(option, arg_name = "folder")]
    to: String,
    /// only objects of this bucket; one whose name is lost is called bucket-<id>
    #[argh(option, arg_name = "bucket")]
    bucket: Option<String>,
    /// print the result as JSON
    #[argh(switch)]
    json: bool,
}

impl Salvage {
    pub(crate) fn run(&self) -> Outcome {
        cairn_server::restrict_new_files();
        let (data_dir, to) = (Path::new(&self.data_dir), Path::new(&self.to));
        let key = master_key()?;
        refuse_within(to, data_dir)?;
        let store = DamagedStore::open(data_dir).map_err(|error| refusal(&error))?;
        if let Some(bucket) = self.bucket.as_deref().filter(|bucket| !store.may_have_bucket(bucket)) {
            return Err(format!("the store has no bucket {}", terminal::plain(bucket)).into());
        }
        let mut folder = SalvageFolder::create(to)?;
        let key = key.as_deref().map(str::as_bytes);
        store
            .salvage(key, self.bucket.as_deref(), &mut folder)
            .map_err(|error| format!("{error}\n  what was written so far is in {}", to.display()))?;
        let counts = folder.finish()?;
        output::print(&if self.json { terminal::json(&as_json(&counts)) } else { text(&counts) })?;
        match counts.lost {
            0 => Ok(()),
            lost => Err(format!(
                "{} found\n  {} names what is lost",
                counted(lost, "problem"),
                to.join("damaged.jsonl").display()
            )
            .into()),
        }
    }
}

fn refusal(error: &OpenError) -> String {
    let hint = match error {
        OpenError::FormatTooNew { .. } => {
            "\n  if no newer program has used it, its superblock is damaged: move superblock.json away, and salvage does without it"
        }
        _ => "",
    };
    format!("{error}{hint}")
}

/// Reads the master key, if there is one.
fn master_key() -> Result<Option<String>, String> {
    if let Ok(key) = std::env::var(MASTER_KEY_VARIABLE) {
        return Ok(Some(key));
    }
    let variable = format!("{MASTER_KEY_VARIABLE}_FILE");
    let Some(path) = std::env::var_os(&variable) else { return Ok(None) };
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{variable}: {}: {error}", Path::new(&path).display()))?;
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

fn as_json(counts: &Counts) -> serde_json::Value {
    json!({
        "files": counts.files,
        "bytes": counts.bytes,
        "delete_markers": counts.delete_markers,
        "uncertain": counts.uncertain,
        "lost": counts.lost,
    })
}

fn text(counts: &Counts) -> String {
    let mut text = format!(
        "{} with {} bytes, {}\n",
        counted(counts.files, "version"),
        counts.bytes,
        counted(counts.delete_markers, "delete marker")
    );
    if counts.uncertain > 0 {
        text.push_str(&format!(
            "{} not certain: beside damage, it may have been deleted or replaced (\"certain\": false)\n",
            counted(counts.uncertain, "version")
        ));
    }
    text
}
