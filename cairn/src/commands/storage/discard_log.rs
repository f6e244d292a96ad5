//! `cairn storage discard-log`: gives up damaged commit logs of a stopped store.

use std::path::Path;

use cairn_engine::{DamagedSlice, DiscardMode, LostObject, discard_damaged_logs};
use serde_json::json;

use crate::failure::Outcome;
use crate::{output, terminal};

/// Most objects of a slice that are named without --json.
const NAMED_MAX: usize = 20;

/// Show the damaged commit logs of a stopped store, and what giving them up would lose. With --apply, give them up: what
/// precedes the damage is kept, all later changes are lost, and a copy of each log stays in its folder. Use it only if there is
/// no backup. It needs no secrets.
#[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
#[argh(subcommand, name = "discard-log", help_triggers("-h", "--help"))]
pub(crate) struct DiscardLog {
    /// the data folder of a stopped store
    #[argh(option, arg_name = "folder")]
    data_dir: String,
    /// give the damaged logs up
    #[argh(switch)]
    apply: bool,
    /// print the result as JSON
    #[argh(switch)]
    json: bool,
}

impl DiscardLog {
    pub(crate) fn run(&self) -> Outcome {
        cairn_server::restrict_new_files();
        let data_dir = Path::new(&self.data_dir);
        let mode = if self.apply { DiscardMode::Discard } else { DiscardMode::Examine };
        let slices = discard_damaged_logs(data_dir, mode).map_err(|error| error.to_string())?;
        let name = |path: &Path| path.strip_prefix(data_dir).unwrap_or(path).display().to_string();
        if self.json {
            let logs: Vec<_> = slices.iter().map(|slice| as_json(&name(&slice.folder), slice)).collect();
            return output::print(&terminal::json(&json!({ "applied": self.apply, "damaged_logs": logs })));
        }
        if slices.is_empty() {
            return output::print("no commit log is damaged\n");
        }
        let lines = slices.iter().map(|slice| lines(&name(&slice.folder), slice)).collect::<String>();
        output::print(&format!("{lines}{}", closing(self.apply)))
    }
}

fn as_json(path: &str, DamagedSlice { log, lost_objects, .. }: &DamagedSlice) -> serde_json::Value {
    let object = |LostObject { bucket, key }: &LostObject| {
        let bucket = bucket.as_ref().map(|name| name.as_str());
        json!({ "bucket": bucket, "key": String::from_utf8_lossy(key) })
    };
    json!({
        "environment": path,
        "damage": log.what,
        "kept_transactions": log.kept,
        "lost_transactions": log.lost,
        "lost_objects": lost_objects.iter().map(object).collect::<Vec<_>>(),
    })
}

fn lines(path: &str, DamagedSlice { log, lost_objects, .. }: &DamagedSlice) -> String {
    let lost = match log.lost {
        Some(lost) => format!("the damaged one and {lost} after it are lost"),
        None => "all after the last checkpoint are lost".to_owned(),
    };
    let mut text =
        format!("{path}: {}\n  transactions before the damage: {} kept, {lost}\n", log.what, log.kept);
    if lost_objects.is_empty() {
        return text;
    }
    text.push_str("  these objects lose changes, in addition to those of the damaged transaction:\n");
    for LostObject { bucket, key } in lost_objects.iter().take(NAMED_MAX) {
        let bucket = bucket.as_ref().map_or("(unknown bucket)", |name| name.as_str());
        let key = terminal::plain(&String::from_utf8_lossy(key));
        text.push_str(&format!("    {bucket}/{key}\n"));
    }
    let more = lost_objects.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        text.push_str(&format!("    and {more} more, which --json names\n"));
    }
    text
}

const fn closing(is_applied: bool) -> &'static str {
    if is_applied {
        "The damaged logs were given up. Start the server, then run `cairn verify store`: objects whose space was used again are reported.\n"
    } else {
        "Nothing was changed. With --apply the store opens again, without what is lost.\n"
    }
}
