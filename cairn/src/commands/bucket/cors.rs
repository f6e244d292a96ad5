//! `cairn bucket cors`: shows, replaces or removes the CORS rules of a bucket.

use cairn_api::{CorsRule, CorsRules};
use serde_json::Value;

use crate::client::{Client, Request};
use crate::commands::macros::command;
use crate::commands::resources::BUCKETS;
use crate::document::DocumentKind;
use crate::failure::{Failure, Outcome};
use crate::output::table::{Columns, joined, table, text};

command! {
    /// Show, replace or remove a bucket's CORS rules: they allow web pages of other origins to use it.
    #[argh(note = r#"Rules that let pages of one site read objects and upload them:

  {{"rules": [{{"allowed_origins": ["https://app.example.com"],
    "allowed_methods": ["GET", "PUT"], "allowed_headers": ["*"],
    "expose_headers": ["ETag"], "max_age_seconds": 3000}}]}}"#)]
    struct Cors("cors") {
        /// the bucket's name
        #[argh(positional)]
        name: String,
        /// replace the rules by those of this JSON file; - means standard input
        #[argh(option, arg_name = "file")]
        set: Option<String>,
        /// remove all rules
        #[argh(switch)]
        remove: bool,
    }
}

const DOCUMENT: DocumentKind = DocumentKind { noun: "CORS rules", command: "bucket cors" };

const RULES: Columns<CorsRule> = &[
    ("id", |rule| text(&rule.id)),
    ("origins", |rule| joined(&rule.allowed_origins, ", ")),
    ("methods", |rule| joined(&rule.allowed_methods, ", ")),
    ("headers", |rule| joined(&rule.allowed_headers, ", ")),
    ("exposed", |rule| joined(&rule.expose_headers, ", ")),
    ("seconds", |rule| text(&rule.max_age_seconds)),
];

fn print(client: &Client, body: &Value) -> Outcome {
    client.print_as(body, |CorsRules { rules }| {
        if rules.is_empty() {
            "no CORS rules: no web page of another origin may use the bucket\n".to_owned()
        } else {
            table(RULES, rules)
        }
    })
}

impl Cors {
    pub(super) fn run(&self) -> Outcome {
        let path = BUCKETS.path_of(&self.name) + "/cors";
        match (&self.set, self.remove) {
            (Some(_), true) => Err(Failure::WrongUsage("--set and --remove exclude each other".to_owned())),
            (None, true) => {
                let done = format!("bucket {} has no CORS rules", self.name);
                self.client()?.change(&Request::delete(path), &done)
            }
            (Some(file), false) => {
                let document = DOCUMENT.read(file)?;
                let client = self.client()?;
                print(&client, &client.call(&Request::put(path).document(document))?)
            }
            (None, false) => {
                let client = self.client()?;
                print(&client, &client.call(&Request::get(path))?)
            }
        }
    }
}
