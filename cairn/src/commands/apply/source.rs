//! Reads a file into its tables. Every problem has a line.
//!
//! Each table is read for itself, so that all problems of a file are reported at once. No message repeats a value that could be
//! a secret.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::Range;

use cairn_api::in_document_terms;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

use super::tables::{AccountTable, BucketTable, PolicyTable, WebhookTable};
use crate::failure::Failure;
use crate::quantity::counted;
use crate::terminal::plain;

/// Problems that are shown. A file of another kind could have one for every line.
const PROBLEMS_MAX: usize = 50;

/// The content of a file.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) buckets: Vec<Spanned<BucketTable>>,
    pub(super) policies: Vec<Spanned<PolicyTable>>,
    pub(super) accounts: Vec<Spanned<AccountTable>>,
    pub(super) webhooks: Vec<Spanned<WebhookTable>>,
}

/// The problems of a file, each with its line.
pub(super) struct Problems {
    /// The file, as messages name it.
    file: String,
    /// The offset of each line, in bytes.
    lines: Vec<usize>,
    found: RefCell<Vec<(usize, String)>>,
}

impl Problems {
    pub(super) fn new(file: &str, text: &str) -> Self {
        let after = text.match_indices('\n').map(|(place, _)| place + 1);
        Self {
            file: file.to_owned(),
            lines: std::iter::once(0).chain(after).collect(),
            found: RefCell::default(),
        }
    }

    /// Returns the line of a place, counted from 1.
    pub(super) fn line(&self, place: &Range<usize>) -> usize {
        self.lines.partition_point(|begin| *begin <= place.start)
    }

    /// Adds a problem.
    pub(super) fn add(&self, place: &Range<usize>, text: impl Display) {
        self.found.borrow_mut().push((self.line(place), text.to_string()));
    }

    /// Adds a problem that no line of the file has.
    pub(super) fn add_without_line(&self, text: impl Display) {
        self.found.borrow_mut().push((0, text.to_string()));
    }

    /// Adds the problem of a check that failed. Returns whether there is none.
    pub(super) fn check<E: Display>(&self, place: &Range<usize>, checked: Result<(), E>) -> bool {
        checked.map_err(|error| self.add(place, error)).is_ok()
    }

    /// Fails if there are problems, with all of them in the order of their lines.
    pub(super) fn result(&self) -> Result<(), Failure> {
        let mut found = self.found.take();
        if found.is_empty() {
            return Ok(());
        }
        found.sort();
        found.dedup();
        let (file, count) = (plain(&self.file), counted(found.len() as u64, "problem"));
        let mut text = format!("{count} in {file}; nothing was changed");
        for (line, problem) in found.iter().take(PROBLEMS_MAX) {
            let place = if *line == 0 { String::new() } else { format!("line {line}: ") };
            text.push_str(&format!("\n  {place}{}", plain(problem)));
        }
        if found.len() > PROBLEMS_MAX {
            text.push_str(&format!("\n  and {} more", found.len() - PROBLEMS_MAX));
        }
        Err(Failure::Failed(text))
    }
}

/// Reads the tables of a file.
pub(super) fn read(text: &str, problems: &Problems) -> Tables {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            problems.add(&error.span().unwrap_or_default(), format_args!("not TOML: {}", error.message()));
        }
        return Tables::default();
    }
    let mut tables = Tables::default();
    for (name, value) in root.into_inner() {
        match &**name.get_ref() {
            "buckets" => tables.buckets = array("buckets", value, problems),
            "policies" => tables.policies = array("policies", value, problems),
            "accounts" => tables.accounts = array("accounts", value, problems),
            "webhooks" => tables.webhooks = array("webhooks", value, problems),
            other => problems.add(
                &name.span(),
                format_args!(
                    "unknown table `{other}`, expected one of `buckets`, `policies`, `accounts`, `webhooks`"
                ),
            ),
        }
    }
    tables
}

/// Reads an array of tables. A table with a problem is left out.
fn array<'i, T: Deserialize<'i>>(
    name: &str,
    value: Spanned<DeValue<'i>>,
    problems: &Problems,
) -> Vec<Spanned<T>> {
    let place = value.span();
    let DeValue::Array(items) = value.into_inner() else {
        problems.add(&place, format_args!("{name} must be an array of tables: [[{name}]]"));
        return Vec::new();
    };
    let mut read = Vec::new();
    for item in items {
        let place = item.span();
        match T::deserialize(ValueDeserializer::from(item)) {
            Ok(table) => read.push(Spanned::new(place, table)),
            Err(error) => problems.add(&error.span().unwrap_or(place), explained(&error)),
        }
    }
    read
}

/// Members that people try for a secret in the file itself.
const SECRETS: [&str; 5] = ["secret_key", "secret", "secret_access_key", "signing_secret", "password"];

/// Returns the message of an error. A value that serde quotes may be a secret, so the key is named instead.
fn explained(error: &Error) -> String {
    let message = in_document_terms(error.message(), "a table");
    for name in SECRETS {
        if message.starts_with(&format!("unknown field `{name}`")) {
            return match name {
                "signing_secret" => {
                    "the server makes the signing secret of a webhook; `cairn webhook rotate-secret` shows a new one"
                        .to_owned()
                }
                _ => format!(
                    "`{name}` is refused: a secret must not be in the file; credential has secret_key_file or secret_key_env, \
                     which name a file or an environment variable"
                ),
            };
        }
    }
    const FOUND: [(&str, &str); 9] = [
        ("invalid type: array", "an array is not possible here"),
        ("invalid type: table", "a table is not possible here"),
        ("invalid type: string ", "a text is not possible here"),
        ("invalid type: integer ", "a number is not possible here"),
        ("invalid type: floating point ", "a number is not possible here"),
        ("invalid type: boolean ", "a boolean is not possible here"),
        ("invalid value: string ", "this text is not possible here"),
        ("invalid value: integer ", "this number is not possible here"),
        ("unknown variant ", "this text is not possible here"),
    ];
    let found = FOUND.iter().find(|(begin, _)| message.starts_with(begin));
    let (Some((_, said)), Some((_, expected))) = (found, message.rsplit_once(", expected ")) else {
        return message;
    };
    // Only this form has the key.
    let shown = error.to_string();
    let key = shown.trim_end().rsplit_once("\nin `").and_then(|(_, key)| key.strip_suffix('`'));
    let key = key.map_or_else(String::new, |key| format!("{key}: "));
    format!("{key}{said}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let problems = Problems::new("store.toml", text);
        read(text, &problems);
        problems.result().map_or_else(|failure| failure.message().to_owned(), |()| String::new())
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let text = "[[buckets]]\nname = \"a\"\nversionning = \"Enabled\"\n\n[[buckets]]\n\n[[accounts]]\nname = 5\n[tokens]\n";
        let said = problems(text);
        assert!(said.starts_with("4 problems in store.toml; nothing was changed\n  line 3: unknown field `versionning`, expected one of `name`"), "{said}");
        for expected in [
            "\n  line 5: missing field `name`",
            "\n  line 8: name: a number is not possible here, expected a string",
            "\n  line 9: unknown table `tokens`",
        ] {
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn errors_deep_in_a_table_have_the_line_of_the_value() {
        for (text, said) in [
            (
                "[[buckets]]\nname = \"a\"\ncors = [\n  {allowed_origins = [\"*\"],\n   allowed_method = [\"GET\"]},\n]\n",
                "line 5: unknown field `allowed_method`",
            ),
            (
                "[[buckets]]\nname = \"a\"\n[[buckets.lifecycle]]\nprefix = \"\"\nexpiration = -1\n",
                "line 5: lifecycle.expiration: this number is not possible here",
            ),
            ("[[buckets]]\nname = \"a\"\n[buckets.quota]\nbytes = \"much\"\n", "line 4: expected a size"),
            (
                "[[buckets]]\nname = \"a\"\n[buckets.quota]\nbytes = -5\n",
                "line 4: -5 is not a number of bytes",
            ),
            (
                "[[buckets]]\nname = \"a\"\n[buckets.quota]\nbytes = {mode = \"limit\", byte = 5}\n",
                "line 4: unknown field `byte`",
            ),
            (
                "[[buckets]]\nname = \"a\"\n[buckets.public]\nrules = [{prefix = \"\"}]\nblock = true\n",
                "line 5: unknown field `block`",
            ),
            ("[[buckets]]\nname = \"a\"\ndefault_retention = \"null\"\n", "line 3: \"null\" is not \"none\""),
            (
                "[[buckets]]\nname = \"a\"\nversioning = \"enabled\"\n",
                "line 3: versioning: this text is not possible here, expected one of `Unversioned`",
            ),
            (
                "[[policies]]\nname = \"p\"\n[[policies.statements]]\neffect = \"allow\"\nactions = \"s3:GetObject\"\n",
                "line 5: statements.actions: a text is not possible here, expected an array",
            ),
            (
                "[[buckets]]\nname = [\"a\"]\n",
                "line 2: name: an array is not possible here, expected a string",
            ),
            (
                "[[buckets]]\nname = \"a\"\n[[buckets.lifecycle]]\nexpiration = \"soon\"\n",
                "line 4: lifecycle.expiration: a text is not possible here, expected a whole number",
            ),
            ("[buckets]\nname = \"a\"\n", "line 1: buckets must be an array of tables: [[buckets]]"),
            ("a = [\n", "not TOML: "),
            ("[[buckets]]\nname = \"a\"\nname = \"b\"\n", "line 3: not TOML: duplicate key"),
        ] {
            let found = problems(text);
            assert!(found.contains(said), "{text}: {found}");
        }
    }

    #[test]
    fn secrets_in_the_file_are_refused_and_not_repeated() {
        let account = "[[accounts]]\nname = \"a\"\n";
        for (text, said) in [
            (
                "credential = {access_key = \"abc\", secret_key = \"hush-hush\"}",
                "line 3: `secret_key` is refused: a secret must not be in the file",
            ),
            (
                "credential = \"hush-hush\"",
                "line 3: credential: a text is not possible here, expected a table with access_key",
            ),
            ("credential = [\"hush-hush\"]", "line 3: "),
            ("secret_key = \"hush-hush\"", "line 3: `secret_key` is refused"),
            (
                "credential = {access_key = \"abc\", secret_key_env = 4874}",
                "secret_key_env: a number is not possible",
            ),
            ("policies = \"hush-hush\"", "line 3: policies: a text is not possible"),
            ("enabled = \"hush-hush\"", "line 3: enabled: a text is not possible"),
        ] {
            let found = problems(&format!("{account}{text}\n"));
            assert!(
                found.contains(said) && !found.contains("hush") && !found.contains("4874"),
                "{text}: {found}"
            );
        }
        let webhook = "[[webhooks]]\ntarget_url = \"https://a.example\"\nevent_types = []\nsigning_secret = \"hush-hush\"\n";
        let found = problems(webhook);
        assert!(
            found.contains("line 4: the server makes the signing secret") && !found.contains("hush"),
            "{found}"
        );
    }

    #[test]
    fn both_forms_are_read() {
        let text = r#"
            [[buckets]]
            name = "a"
            quota = {bytes = "1KiB", objects = {mode = "unlimited"}}
            cors = {rules = [{allowed_origins = ["*"], allowed_methods = ["GET"]}]}
            public = [{prefix = "p/", list = true}]
            default_retention = "none"
            [[buckets.lifecycle]]
            prefix = "logs/"
            expiration = 3
            [[buckets]]
            name = "b"
            quota.objects = 7
            [buckets.public]
            blocked = true
        "#;
        let problems = Problems::new("", text);
        let tables = read(text, &problems);
        assert_eq!(problems.result(), Ok(()));
        let [a, b] = &tables.buckets[..] else { panic!("two buckets") };
        let (a, b) = (a.get_ref(), b.get_ref());
        let quota = a.quota.as_ref().unwrap().get_ref();
        assert_eq!(quota.bytes.as_ref().unwrap().get_ref().0.bytes, Some(1024));
        assert_eq!(quota.objects.as_ref().unwrap().get_ref().0.objects, None);
        assert_eq!(a.cors.as_ref().unwrap().get_ref().0.len(), 1);
        assert_eq!(a.lifecycle.as_ref().unwrap().get_ref().0[0].get_ref().expiration, Some(3));
        assert!(a.default_retention.as_ref().unwrap().get_ref().0.is_none());
        let public = a.public.as_ref().unwrap().get_ref();
        assert!(public.blocked.is_none() && public.rules.as_ref().unwrap()[0].get_ref().list);
        let public = b.public.as_ref().unwrap().get_ref();
        assert!(public.blocked == Some(true) && public.rules.is_none());
        assert_eq!(
            b.quota.as_ref().unwrap().get_ref().objects.as_ref().unwrap().get_ref().0.objects,
            Some(7)
        );
        assert_eq!(problems.line(&tables.buckets[1].span()), 11);
    }
}
