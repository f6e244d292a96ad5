//! Proposed settings that need the user's consent: public access and webhooks.

use std::str::FromStr;

use serde::Serialize;

/// The URL of a target of notifications: the value of `--webhook`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) target: String,
    pub(super) url: String,
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (target, url) = text.split_once('=').ok_or("expected <target>=<url>")?;
        if target.is_empty() || url.is_empty() {
            return Err("expected <target>=<url>");
        }
        Ok(Self { target: target.to_owned(), url: url.to_owned() })
    }
}

/// The outcome of a proposal. In a dry run: the expected outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    Proposed,
    Made,
    Unchanged,
    Refused,
}

/// A proposal.
#[derive(PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Proposal {
    /// A rule of public access.
    Public { bucket: String, prefix: String, list: bool, result: Fate },
    /// A webhook. The URL is null if nobody has given it.
    Webhook {
        bucket: String,
        target: String,
        target_url: Option<String>,
        event_types: Vec<&'static str>,
        prefix: Option<String>,
        result: Fate,
    },
}

impl Proposal {
    const fn result(&self) -> Fate {
        match self {
            Self::Public { result, .. } | Self::Webhook { result, .. } => *result,
        }
    }

    /// Returns whether it is not made because nobody has accepted it.
    pub(super) fn is_pending(&self) -> bool {
        self.result() == Fate::Proposed
    }

    pub(super) fn text(&self, is_dry_run: bool) -> String {
        let what = match self {
            Self::Public { bucket, prefix, list, .. } => {
                let what = if *list { "read and list" } else { "read" };
                format!("everybody may {what} {bucket}/{prefix}*")
            }
            Self::Webhook { bucket, target, target_url, event_types, prefix, .. } => {
                let place = format!("{bucket}/{}*", prefix.as_deref().unwrap_or_default());
                let url = target_url.as_ref().map_or_else(
                    || format!("target {target} (--webhook {target}=<url> says where it is)"),
                    |url| format!("target {target} at {url}"),
                );
                format!("webhook of {} on {place} to the {url}", event_types.join(", "))
            }
        };
        let result = match (self.result(), is_dry_run) {
            (Fate::Proposed, _) => "not made without --accept",
            (Fate::Made, false) => "made",
            (Fate::Made, true) => "would be made",
            (Fate::Unchanged, _) => "is here already",
            (Fate::Refused, _) => "refused",
        };
        format!("{what}: {result}")
    }
}
