//! `cairn config`: shows the configuration that a server would start with.

use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};
use cairn_server::config::{EffectiveKey, Environment, Origin};
use cairn_server::{Mode, ServeOptions, effective_config};
use serde_json::{Value, json};

use crate::commands::macros::noun;
use crate::failure::Outcome;
use crate::output;
use crate::output::table::{Columns, table, text};
use crate::terminal;

noun! {
    /// Show the configuration of a server.
    struct Config("config"): ConfigCommand { ConfigShow }
}

/// Show every key with its effective value and where the value comes from: default, file, environment or option. Secrets are
/// redacted. The exit code is 0 if the configuration is valid.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "show", help_triggers("-h", "--help"))]
pub(crate) struct ConfigShow {
    /// show the configuration of `serve --dev`
    #[argh(switch)]
    dev: bool,
    /// the configuration file (TOML; default: SERVICE_CONFIG)
    #[argh(option, arg_name = "file")]
    config: Option<String>,
    /// the data folder; overrides SERVICE_DATA_DIR and the file
    #[argh(option, arg_name = "folder")]
    data_dir: Option<String>,
    /// print the keys as JSON
    #[argh(switch)]
    json: bool,
}

const COLUMNS: Columns<Value> = &[
    ("key", |key| text(&key["key"])),
    ("value", |key| text(&key["value"])),
    ("origin", |key| match key["source"].as_str() {
        Some(source) => format!("{}: {}", terminal::word(&key["origin"]), terminal::plain(source)),
        None => text(&key["origin"]),
    }),
];

impl ConfigShow {
    /// Prints the configuration, also if it is not valid. Fails then.
    fn run(&self) -> Outcome {
        let options = ServeOptions {
            mode: if self.dev { Mode::Dev } else { Mode::Production },
            config: self.config.as_ref().map(PathBuf::from),
            data_dir: self.data_dir.as_ref().map(PathBuf::from),
            dev_tls: false,
            console_dir: None,
        };
        let (keys, problem) = effective_config(&options, &Environment::of_process());
        let rows: Vec<Value> = keys.iter().map(row).collect();
        let problem = problem.map(|problem| problem.to_string());
        output::print(&if self.json {
            terminal::json(&json!({"keys": rows, "problem": problem}))
        } else {
            table(COLUMNS, &rows)
        })?;
        problem.map_or(Ok(()), |problem| Err(terminal::lines(&problem).into()))
    }
}

fn row(key: &EffectiveKey) -> Value {
    let (origin, source) = match &key.origin {
        Origin::CommandLine(option) => ("option", Some(option.clone())),
        Origin::Environment(variable) => ("environment", Some(variable.clone())),
        Origin::File(path) => ("file", Some(path.to_string_lossy().into_owned())),
        Origin::Default => ("default", None),
        Origin::Generated => ("generated", None),
        Origin::NotSet => ("not set", None),
    };
    json!({"key": key.name, "variable": key.variable, "value": key.value, "origin": origin, "source": source})
}
