//! A change of one thing: how it is shown, and the requests that make it.

use cairn_api::{CreateServiceAccount, CreateWebhook, GivenCredential};
use serde_json::{Value, json};

use super::difference;
use crate::client::Request;
use crate::quantity::bytes_text;
use crate::terminal::plain;

/// The member that is shown with a unit.
pub(super) const QUOTA_BYTES: &str = "quota.bytes";

/// The action on a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Create,
    Change,
    Delete,
}

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }

    const fn sign(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Delete => '-',
        }
    }
}

/// A member with another value than before. Null is no value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) before: Value,
    pub(super) after: Value,
}

impl Member {
    pub(super) fn new(name: &'static str, before: impl Into<Value>, after: impl Into<Value>) -> Self {
        Self { name, before: before.into(), after: after.into() }
    }

    /// Appends the lines that show the member.
    fn write(&self, out: &mut String) {
        let Self { name, before, after } = self;
        let shown = |value: &Value| match value.as_u64() {
            Some(bytes) if *name == QUOTA_BYTES => Value::String(bytes_text(bytes)),
            _ => value.clone(),
        };
        difference::write(out, name, &shown(before), &shown(after));
    }
}

/// A request, or several that need what earlier ones have returned. Accounts and policies are known by their names.
pub(super) enum Step {
    Send(Request),
    CreatePolicy {
        name: String,
        request: Request,
    },
    /// Creates an account without usable keys, or with the given ones.
    CreateAccount(CreateServiceAccount),
    SetAccountStatus {
        account: String,
        enabled: bool,
    },
    AddKeys {
        account: String,
        credential: GivenCredential,
    },
    Attach {
        policy: String,
        account: String,
    },
    CreateWebhook(CreateWebhook),
}

/// A change of one thing.
pub(super) struct Change {
    pub(super) action: Action,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) members: Vec<Member>,
    /// The steps, each with a description for messages.
    pub(super) steps: Vec<(&'static str, Step)>,
}

impl Change {
    pub(super) const fn new(action: Action, kind: &'static str, name: String) -> Self {
        Self { action, kind, name, members: Vec::new(), steps: Vec::new() }
    }

    /// Adds a member with the steps that set it.
    pub(super) fn set(&mut self, member: Member, step: Step) {
        self.steps.push((member.name, step));
        self.members.push(member);
    }

    /// Returns what is changed: `bucket photos`.
    pub(super) fn subject(&self) -> String {
        format!("{} {}", self.kind, plain(&self.name))
    }

    /// Returns the lines that show the change.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{} {}\n", self.action.sign(), self.subject());
        for member in &self.members {
            member.write(&mut out);
        }
        out
    }

    /// Returns the change as JSON.
    pub(super) fn json(&self) -> Value {
        let member =
            |member: &Member| json!({"name": member.name, "before": member.before, "after": member.after});
        json!({
            "action": self.action.name(),
            "kind": self.kind,
            "name": self.name,
            "members": self.members.iter().map(member).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_old_and_new_values() {
        let mut change = Change::new(Action::Change, "bucket", "photos\u{1b}[2J".to_owned());
        change.members = vec![
            Member::new("versioning", "Suspended", "Enabled"),
            Member::new(QUOTA_BYTES, "unlimited", 5_u64 << 30),
            Member::new("default_retention", json!({"mode": "GOVERNANCE", "days": 3}), Value::Null),
            Member::new(
                "lifecycle",
                json!([{"prefix": "a"}, {"prefix": "b"}]),
                json!([{"prefix": "b"}, {"prefix": "c"}]),
            ),
            Member::new("public", Value::Null, json!([{"prefix": "\u{1b}"}])),
        ];
        let expected = concat!(
            "~ bucket photos[2J\n",
            "    versioning: \"Suspended\" -> \"Enabled\"\n",
            "    quota.bytes: \"unlimited\" -> \"5 GiB (5368709120 bytes)\"\n",
            "    default_retention: { mode = \"GOVERNANCE\", days = 3 } -> none\n",
            "    lifecycle:\n      - { prefix = \"a\" }\n      + { prefix = \"c\" }\n",
            "    public:\n      + { prefix = \"\\u001b\" }\n",
        );
        assert_eq!(change.text(), expected);
    }
}
