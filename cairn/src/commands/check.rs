//! `cairn check`: reports whether the server would start here, and what to fix, without starting it.

use std::fmt::Write;
use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};
use cairn_server::config::Environment;
use cairn_server::{Checked, Mode, ServeOptions, Verdict};
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output;
use crate::quantity::counted;
use crate::terminal::{self, plain};

/// Check configuration, permissions, kernel, resource limits, disk, clock, ports and the store's key, without starting the
/// server or changing anything. The exit code is 0 if no check failed.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "check", help_triggers("-h", "--help"))]
pub(crate) struct Check {
    /// check for `serve --dev`
    #[argh(switch)]
    dev: bool,
    /// the configuration file (TOML; default: SERVICE_CONFIG)
    #[argh(option, arg_name = "file")]
    config: Option<String>,
    /// the data folder; overrides SERVICE_DATA_DIR and the file
    #[argh(option, arg_name = "folder")]
    data_dir: Option<String>,
    /// print the results as JSON
    #[argh(switch)]
    json: bool,
}

impl Check {
    /// Runs the checks and prints the results. Fails if a check fails.
    pub(crate) fn run(&self) -> Outcome {
        let options = ServeOptions {
            mode: if self.dev { Mode::Dev } else { Mode::Production },
            config: self.config.as_ref().map(PathBuf::from),
            data_dir: self.data_dir.as_ref().map(PathBuf::from),
            dev_tls: false,
            console_dir: None,
        };
        let found = cairn_server::check(&options, &Environment::of_process());
        output::print(&if self.json { terminal::json(&as_json(&found)) } else { lines(&found) })?;
        let failed = count(&found, Verdict::Failed);
        match failed {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} failed", counted(found.len() as u64, "check")).into()),
        }
    }
}

fn count(found: &[Checked], verdict: Verdict) -> usize {
    found.iter().filter(|checked| checked.verdict == verdict).count()
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warning => "warning",
        Verdict::Failed => "failed",
    }
}

/// One line for each check, followed by how to fix it.
fn lines(found: &[Checked]) -> String {
    const VERDICT: usize = 9;
    let name = found.iter().map(|checked| checked.name.len()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for checked in found {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:VERDICT$}{:name$}{}",
            word(checked.verdict),
            checked.name,
            plain(&checked.message)
        );
        if let Some(fix) = &checked.fix {
            let _ = writeln!(text, "{:1$}fix: {2}", "", VERDICT + name, plain(fix));
        }
    }
    text
}

fn as_json(found: &[Checked]) -> Value {
    let checks: Vec<Value> = found
        .iter()
        .map(|Checked { name, verdict, message, fix }| {
            json!({"name": name, "verdict": word(*verdict), "seen": message, "mend": fix})
        })
        .collect();
    json!({
        "checks": checks,
        "failed": count(found, Verdict::Failed),
        "warnings": count(found, Verdict::Warning),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_line_and_its_fix_below() {
        let checked = |verdict, fix: Option<&str>| Checked {
            name: "clock",
            verdict,
            message: "found\u{1b}[2J".to_owned(),
            fix: fix.map(str::to_owned),
        };
        let found = [checked(Verdict::Ok, None), checked(Verdict::Failed, Some("wind it"))];
        assert_eq!(
            lines(&found),
            "ok       clock  found[2J\nfailed   clock  found[2J\n                fix: wind it\n"
        );
        let value = as_json(&found);
        assert_eq!((&value["failed"], &value["warnings"]), (&json!(1), &json!(0)));
        assert_eq!(value["checks"][1]["mend"], "wind it");
        assert_eq!(value["checks"][0]["mend"], Value::Null);
    }
}
