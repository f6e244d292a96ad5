//! The settings that each client needs for a server, from `clients.json`.
//!
//! An entry of the file has a name, a title, other names, blocks of lines to paste, and notes. A block, line or note may have
//! conditions (`when`), which must all hold: `strict`, `extended`, `http`, `tls`, `ca` (a certificate authority of one's own),
//! `keys` (the settings are for an application, whose keys are known), `prefix` (which has a part of a bucket). `!` in front of
//! one is its opposite. Names in braces are replaced; for an application, also the words `ACCESS_KEY`, `SECRET_KEY`, `BUCKET`
//! and `PATH`.

use std::path::PathBuf;
use std::sync::OnceLock;

use cairn_server::config::{EDITS_MAX, closest};
use serde_json::{Value, json};

use crate::s3::endpoint::Endpoint;
use crate::terminal;

/// The region of the server's buckets.
pub(crate) const REGION: &str = "us-east-1";
const DATA: &str = include_str!("clients.json");

/// The mode of a server, `s3.compatibility`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Answers 501 to what only the mode `extended` implements.
    Strict,
    /// Implements what clients use by default.
    Extended,
}

impl Mode {
    /// The word for it in the configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Extended => "extended",
        }
    }

    /// Parses the word of the configuration.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Strict, Self::Extended].into_iter().find(|mode| mode.name() == name)
    }
}

/// The facts about a server on which the settings of clients depend.
pub(crate) struct Facts<'a> {
    pub(crate) endpoint: &'a Endpoint,
    /// If it is not known, the settings for `strict` are shown: they work in both modes.
    pub(crate) mode: Option<Mode>,
    pub(crate) region: &'a str,
    /// The certificate authority that clients must trust, unless the host does.
    pub(crate) authority: Option<PathBuf>,
    pub(crate) application: Option<Application<'a>>,
}

/// The application that settings are made for, with its rights.
pub(crate) struct Application<'a> {
    /// The name, and the prefix of its objects if it has the whole bucket.
    pub(crate) name: &'a str,
    pub(crate) bucket: &'a str,
    /// The beginning of its keys; empty for all keys.
    pub(crate) prefix: &'a str,
    pub(crate) access_key: Option<&'a str>,
    pub(crate) secret_key: Option<&'a str>,
}

impl Application<'_> {
    /// Returns what stands for `PATH`: no slash at either end. `None` if it would have to be quoted.
    fn path(&self) -> Option<&str> {
        let path = if self.prefix.is_empty() { self.name } else { self.prefix.trim_end_matches('/') };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        (!path.is_empty() && path.bytes().all(fits)).then_some(path)
    }

    fn filled(&self, text: String) -> String {
        let words = [
            ("ACCESS_KEY", self.access_key),
            ("SECRET_KEY", self.secret_key),
            ("BUCKET", Some(self.bucket)),
            ("PATH", self.path()),
        ];
        let known = words.into_iter().filter_map(|(word, value)| Some((word, value?)));
        known.fold(text, |text, (word, value)| with_word(&text, word, value))
    }
}

/// Replaces a word, but not where it is a part of a name such as `AWS_ACCESS_KEY_ID`.
fn with_word(text: &str, word: &str, value: &str) -> String {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let (mut made, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_whole = !before.ends_with(is_of_name) && !after.starts_with(is_of_name);
        made += before;
        made += if is_whole { value } else { word };
        rest = after;
    }
    made + rest
}

impl Facts<'_> {
    fn holds(&self, condition: &str) -> bool {
        let is_strict = self.mode.unwrap_or(Mode::Strict) == Mode::Strict;
        match condition {
            "strict" => is_strict,
            "extended" => !is_strict,
            "tls" => self.endpoint.has_tls(),
            "http" => !self.endpoint.has_tls(),
            "ca" => self.authority.is_some(),
            "keys" => self.application.is_some(),
            "prefix" => self.application.as_ref().is_some_and(|application| !application.prefix.is_empty()),
            _ => match condition.strip_prefix('!') {
                Some(opposite) => !self.holds(opposite),
                None => panic!("a condition of clients.json is unknown: {condition}"),
            },
        }
    }

    fn applies(&self, item: &Value) -> bool {
        let conditions = item["when"].as_array().into_iter().flatten();
        conditions.filter_map(Value::as_str).all(|condition| self.holds(condition))
    }

    fn filled(&self, text: &str) -> String {
        let Endpoint { scheme, host, port } = self.endpoint;
        let (secure, secure_in_python) =
            if self.endpoint.has_tls() { ("true", "True") } else { ("false", "False") };
        let authority = self.authority.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
        let filled = text
            .replace("{endpoint}", &self.endpoint.url())
            .replace("{authority}", &self.endpoint.authority())
            .replace("{scheme}", scheme)
            .replace("{host}", host)
            .replace("{port}", &port.to_string())
            .replace("{region}", self.region)
            .replace("{secure}", secure)
            .replace("{Secure}", secure_in_python)
            .replace("{ca}", &authority);
        match &self.application {
            Some(application) => application.filled(filled),
            None => filled,
        }
    }
}

/// A client of the file.
#[derive(Clone, Copy)]
pub(crate) struct Client(&'static Value);

fn all() -> &'static [Value] {
    static PARSED: OnceLock<Value> = OnceLock::new();
    let parsed =
        PARSED.get_or_init(|| serde_json::from_str(DATA).expect("clients.json is valid: a test reads it"));
    parsed.as_array().expect("clients.json is a list").as_slice()
}

fn strings(list: &'static Value) -> impl Iterator<Item = &'static str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The names of all clients.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().iter().map(|client| Client(client).name())
}

impl Client {
    /// Finds a client by its name or another name of it.
    ///
    /// # Errors
    /// A message with the most similar name, or with all names.
    pub(crate) fn find(wanted: &str) -> Result<Self, String> {
        let wanted = wanted.to_ascii_lowercase();
        let is_it = |client: &&'static Value| client["name"] == wanted.as_str() || has_alias(client, &wanted);
        if let Some(found) = all().iter().find(is_it) {
            return Ok(Self(found));
        }
        let known = all().iter().flat_map(|client| strings(&client["aliases"]).chain([Self(client).name()]));
        let list = names().collect::<Vec<_>>().join(", ");
        Err(match closest(&wanted, known.map(str::to_owned), EDITS_MAX) {
            Some(meant) => {
                format!("no settings are known for {wanted}; did you mean {meant}? The clients are {list}")
            }
            None => format!("no settings are known for {wanted}; the clients are {list}"),
        })
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.0["name"].as_str().expect("every client of clients.json has a name")
    }

    /// The name for people.
    pub(crate) fn title(self) -> &'static str {
        self.0["title"].as_str().expect("every client of clients.json has a title")
    }

    /// The blocks to paste, each with its place.
    pub(crate) fn settings(self, facts: &Facts<'_>) -> Vec<(String, String)> {
        let blocks = self.0["settings"].as_array().into_iter().flatten().filter(|block| facts.applies(block));
        blocks
            .map(|block| {
                let lines =
                    block["lines"].as_array().into_iter().flatten().filter(|line| facts.applies(line));
                let texts = lines.filter_map(|line| line.as_str().or_else(|| line["line"].as_str()));
                let text: String = texts.map(|line| facts.filled(line) + "\n").collect();
                (block["place"].as_str().unwrap_or_default().to_owned(), text)
            })
            .collect()
    }

    /// Returns notes on the settings.
    pub(crate) fn notes(self, facts: &Facts<'_>) -> Vec<String> {
        let notes = self.0["notes"].as_array().into_iter().flatten().filter(|note| facts.applies(note));
        let texts = notes.filter_map(|note| note["text"].as_str()).map(|text| facts.filled(text));
        texts.chain(self.note_on_prefix(facts)).collect()
    }

    /// An application that may use only a part of a bucket must know which.
    fn note_on_prefix(self, facts: &Facts<'_>) -> Option<String> {
        let prefix = facts.application.as_ref().map(|application| application.prefix)?;
        let is_set =
            || self.settings(facts).iter().any(|(_, text)| text.contains(prefix.trim_end_matches('/')));
        (!prefix.is_empty() && !is_set()).then(|| {
            format!(
                "The settings have no place for the prefix {prefix}: all keys of {} must begin with it.",
                self.title()
            )
        })
    }

    /// The settings to paste, for people.
    pub(crate) fn text(self, facts: &Facts<'_>) -> String {
        let mode = facts.mode.map_or("unknown", Mode::name);
        let mut text = format!("Settings of {} for {} (mode: {mode})\n", self.title(), facts.endpoint.url());
        for (place, lines) in self.settings(facts) {
            text += &format!("\n{place}:\n\n");
            text += &lines
                .lines()
                .map(|line| format!("    {line}").trim_end().to_owned() + "\n")
                .collect::<String>();
        }
        for note in self.notes(facts) {
            text += &format!("\nNote: {note}\n");
        }
        text += "\n";
        terminal::lines(&text)
    }

    /// The settings as JSON.
    pub(crate) fn json(self, facts: &Facts<'_>) -> Value {
        let settings: Vec<Value> = self
            .settings(facts)
            .into_iter()
            .map(|(place, text)| json!({"place": place, "text": text}))
            .collect();
        json!({"name": self.name(), "title": self.title(), "settings": settings, "notes": self.notes(facts)})
    }
}

fn has_alias(client: &'static Value, wanted: &str) -> bool {
    strings(&client["aliases"]).any(|alias| alias == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(endpoint: &'a Endpoint, mode: Option<Mode>, has_authority: bool) -> Facts<'a> {
        let authority = has_authority.then(|| PathBuf::from("/etc/ca.pem"));
        Facts { endpoint, mode, region: REGION, authority, application: None }
    }

    #[test]
    fn every_client_has_complete_settings_for_every_server() {
        let mut names_seen = std::collections::BTreeSet::new();
        for client in all() {
            let client = Client(client);
            for name in strings(&client.0["aliases"]).chain([client.name()]) {
                assert!(names_seen.insert(name), "{name} is the name of two clients");
                assert_eq!(Client::find(name).map(Client::name), Ok(client.name()));
            }
            for url in ["http://s3.example.org:7600", "https://s3.example.org"] {
                let endpoint: Endpoint = url.parse().expect("an address");
                for mode in [Some(Mode::Strict), Some(Mode::Extended), None] {
                    for has_authority in [false, true] {
                        let facts = facts(&endpoint, mode, has_authority && endpoint.has_tls());
                        let settings = client.settings(&facts);
                        let texts: Vec<String> = settings
                            .into_iter()
                            .flat_map(|(place, text)| [place, text])
                            .chain(client.notes(&facts))
                            .collect();
                        assert!(
                            texts.len() >= 2 && texts.iter().all(|text| !text.is_empty()),
                            "{}",
                            client.name()
                        );
                        let whole = texts.concat();
                        for name in [
                            "{endpoint}",
                            "{ca}",
                            "{region}",
                            "{authority}",
                            "{host}",
                            "{port}",
                            "{scheme}",
                            "{Secure}",
                        ] {
                            assert!(!whole.contains(name), "{}: {name}", client.name());
                        }
                        assert!(whole.contains("s3.example.org"), "{}", client.name());
                        assert_eq!(
                            facts.authority.is_some(),
                            whole.contains("/etc/ca.pem"),
                            "{}",
                            client.name()
                        );
                    }
                }
            }
        }
        assert!(names_seen.len() > 40);
    }

    /// Checksum settings are only shown where the mode needs them.
    #[test]
    fn the_extended_mode_needs_no_setting_for_checksums() {
        let endpoint: Endpoint = "https://s3.example.org".parse().expect("an address");
        for client in all() {
            let shown = |mode| {
                let facts = facts(&endpoint, Some(mode), false);
                Client(client).settings(&facts).concat_texts().to_lowercase()
            };
            let name = Client(client).name();
            for word in ["required", "threshold", "disable_bulk", "norename", "chunkedencoding"] {
                assert!(!shown(Mode::Extended).contains(word), "{name}: {word}");
            }
            if ["aws-cli", "boto3", "javascript", "go", "java", "rust", "barman"].contains(&name) {
                assert!(shown(Mode::Strict).contains("required"), "{name}");
            }
        }
    }

    trait Texts {
        fn concat_texts(self) -> String;
    }

    impl Texts for Vec<(String, String)> {
        fn concat_texts(self) -> String {
            self.into_iter().map(|(_, text)| text).collect()
        }
    }

    /// Whoever pastes them needs to fill in nothing of what `cairn app create` knows.
    #[test]
    fn the_settings_of_an_application_have_its_keys_bucket_and_prefix() {
        let endpoint: Endpoint = "https://s3.example.org".parse().expect("an address");
        let filled = |client: Client, prefix, access_key, secret_key| {
            let application =
                Application { name: "blog", bucket: "the-bucket", prefix, access_key, secret_key };
            let facts =
                Facts { application: Some(application), ..facts(&endpoint, Some(Mode::Extended), true) };
            (client.settings(&facts).concat_texts(), client.notes(&facts).concat())
        };
        for client in all().iter().map(Client) {
            let name = client.name();
            let (text, notes) = filled(client, "in/here/", Some("AKEXAMPLE"), Some("secret123"));
            for (word, value) in [("ACCESS_KEY", "AKEXAMPLE"), ("SECRET_KEY", "secret123")] {
                assert!(text.contains(value) && with_word(&text, word, "") == text, "{name}: {text}");
            }
            for word in ["BUCKET", "PATH"] {
                assert_eq!(with_word(&text, word, ""), text, "{name}");
            }
            assert_ne!(
                text.contains("in/here"),
                notes.contains("no place for the prefix in/here/"),
                "{name}"
            );
            let (text, notes) = filled(client, "", Some("AKEXAMPLE"), None);
            assert!(text.contains("SECRET_KEY") && !notes.contains("no place for the prefix"), "{name}");
            let (_, notes) = filled(client, "a \"b", None, None);
            assert!(notes.contains("no place for the prefix a \"b"), "{name}");
        }
    }

    #[test]
    fn only_whole_words_are_replaced() {
        let text = "export AWS_SECRET_ACCESS_KEY=KEY:KEY KEYS MY_KEY KEY";
        assert_eq!(with_word(text, "KEY", "x"), "export AWS_SECRET_ACCESS_KEY=x:x KEYS MY_KEY x");
    }

    #[test]
    fn an_unknown_client_is_answered_with_the_most_similar_one() {
        let said = Client::find("rclnoe").map(Client::name).expect_err("unknown");
        assert!(said.contains("did you mean rclone?"), "{said}");
        let said = Client::find("something-else").map(Client::name).expect_err("unknown");
        assert!(said.contains("aws-cli, boto3,"), "{said}");
        assert_eq!(Client::find("Terraform").map(Client::name), Ok("opentofu"));
    }

    #[test]
    fn the_documentation_names_every_client() {
        let documentation = include_str!("../../../docs/cli.md");
        for name in names() {
            assert!(documentation.contains(&format!("`{name}`")), "docs/cli.md does not name {name}");
        }
    }
}
