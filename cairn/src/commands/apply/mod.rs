//! `cairn apply`: makes buckets, accounts, policies and webhooks as a file says.
//!
//! The file is read ([`source`], [`tables`]) and checked ([`wanted`]), what the server has is read ([`state`]), and both are
//! compared ([`plan`]). Only if nothing is wrong are the changes made ([`carry_out`]).

mod carry_out;
mod change;
mod difference;
mod plan;
mod secrets;
mod source;
mod state;
mod tables;
mod values;
mod wanted;

use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;
use crate::commands::macros::command;
use crate::document::{named, read_text};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::counted;
use crate::terminal::plain;
use carry_out::{Done, carry_out};
use change::{Action, Change};
use plan::Plan;
use source::Problems;
use state::State;
use wanted::Wanted;

/// Longest file, in bytes: some ten thousand accounts.
const FILE_BYTES_MAX: u64 = 8 << 20;

command! {
    /// Make buckets, accounts, policies and webhooks as a TOML file says. A second run changes nothing.
    #[argh(note = r#"A bucket, and an account that may use it:

  [[buckets]]
  name = "photos"
  versioning = "Enabled"
  quota = {{bytes = "10GiB"}}

  [[policies]]
  name = "photos"
  [[policies.statements]]
  effect = "allow"
  actions = ["s3:ListBucket", "s3:GetObject", "s3:PutObject"]
  resources = ["bucket:photos", "bucket:photos/*"]

  [[accounts]]
  name = "gallery"
  policies = ["photos"]
  credential = {{access_key = "gallery", secret_key_file = "gallery.key"}}

What the file does not have stays as it is. docs/declarative.md describes all members."#)]
    struct Apply("apply") {
        /// the file; - means standard input
        #[argh(positional)]
        file: String,
        /// show what would change, and change nothing; the exit code is 1 if something would
        #[argh(switch)]
        diff: bool,
        /// delete accounts, policies, webhooks and empty buckets that are not in the file, and detach other policies
        #[argh(switch)]
        prune: bool,
    }
}

impl Apply {
    pub(crate) fn run(&self) -> Outcome {
        let file = named(&self.file);
        let text = read_text(&self.file, "file", FILE_BYTES_MAX)?;
        let problems = Problems::new(file, &text);
        let wanted = self.wanted(&text, &problems)?;
        let client = self.client()?;
        let state = State::read(&client, &wanted, self.prune)?;
        let plan = Plan::new(&wanted, &state, self.prune, &problems);
        if self.diff {
            return self.show(&client, &plan, problems.result());
        }
        problems.result()?;
        if let Some(refusal) = plan.refusal(&state.role) {
            return Err(Failure::Failed(refusal));
        }
        self.carry_out(&client, &plan, &state)
    }

    /// Reads and checks the file.
    fn wanted(&self, text: &str, problems: &Problems) -> Result<Wanted, Failure> {
        let tables = source::read(text, problems);
        // Secrets are in the folder of the file, wherever the command runs.
        let folder = Path::new(&self.file).parent().filter(|folder| !folder.as_os_str().is_empty());
        let wanted = wanted::wanted(tables, folder.unwrap_or(Path::new(".")), problems);
        problems.result()?;
        if wanted.is_empty() {
            let file = plain(named(&self.file));
            return Err(format!("{file} contains nothing: no buckets, policies, accounts or webhooks").into());
        }
        Ok(wanted)
    }

    /// Shows what would change. Fails if something would, or if there are problems.
    fn show(&self, client: &Client, plan: &Plan, problems: Result<(), Failure>) -> Outcome {
        let counts = Counts::of(&plan.changes);
        client.print(&body(plan, 0, &[]), || {
            let mut text: String = plan.changes.iter().map(Change::text).collect();
            for (kind, name) in &plan.not_in_file {
                text.push_str(&plain(&format!("  {kind} {name} is not in the file, and stays")));
                text.push('\n');
            }
            if plan.changes.is_empty() {
                text.push_str(&self.nothing());
            }
            text
        })?;
        problems?;
        if plan.changes.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("{}; nothing was changed", counts.planned())))
    }

    fn nothing(&self) -> String {
        format!("nothing to change: the server is as {} says\n", plain(named(&self.file)))
    }

    /// Makes the changes. In text, each is shown when it is complete.
    fn carry_out(&self, client: &Client, plan: &Plan, state: &State) -> Outcome {
        let mut printed = Ok(());
        let Done { changes, hints, failure } = carry_out(client, &plan.changes, state, |change| {
            if !self.json && printed.is_ok() {
                printed = output::print(&change.text());
            }
        });
        let shown = client.print(&body(plan, changes, &hints), || {
            let mut text: String = hints.iter().map(|hint| format!("{hint}\n")).collect();
            if plan.changes.is_empty() {
                text.push_str(&self.nothing());
            } else if failure.is_none() {
                text.push_str(&format!("{}\n", Counts::of(&plan.changes).made()));
            }
            text
        });
        match failure {
            Some(failure) => Err(Failure::Failed(failure)),
            None => printed.and(shown),
        }
    }
}

/// Returns what is printed as JSON. The first `done` changes were made.
fn body(plan: &Plan, done: usize, hints: &[String]) -> Value {
    let change = |(index, change): (usize, &Change)| {
        let mut body = change.json();
        body["done"] = json!(index < done);
        body
    };
    let other = |(kind, name): &(&str, String)| json!({"kind": kind, "name": name});
    json!({
        "changes": plan.changes.iter().enumerate().map(change).collect::<Vec<_>>(),
        "not_in_file": plan.not_in_file.iter().map(other).collect::<Vec<_>>(),
        "hints": hints,
    })
}

/// The number of changes of each kind.
struct Counts([u64; 3]);

impl Counts {
    fn of(changes: &[Change]) -> Self {
        let count = |action| changes.iter().filter(|change| change.action == action).count() as u64;
        Self([Action::Create, Action::Change, Action::Delete].map(count))
    }

    fn made(&self) -> String {
        let Self([created, changed, deleted]) = self;
        format!("{created} created, {changed} changed, {deleted} deleted")
    }

    fn planned(&self) -> String {
        let of_kinds = self.0.iter().zip(["create", "change", "delete"]).filter(|(count, _)| **count > 0);
        let of_kinds: Vec<String> = of_kinds.map(|(count, what)| format!("{count} to {what}")).collect();
        format!("{} would be made ({})", counted(self.0.iter().sum(), "change"), of_kinds.join(", "))
    }
}
