//! A history of one key: operations with their responses, and the times of request and response.

use serde::{Deserialize, Serialize};

/// Identifies a version of an object by its entity tag. All bodies of a history are different.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(pub u128);

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        format!("{:032x}", tag.0)
    }
}

impl TryFrom<String> for Tag {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // The number of parts after a hyphen is not needed to distinguish versions.
        let digits = text.split_once('-').map_or(text.as_str(), |(digits, _)| digits);
        u128::from_str_radix(digits, 16).map(Self)
    }
}

/// The condition of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing.
    Always,
    /// `If-None-Match: *`.
    Absent,
    /// `If-Match`.
    Is(Tag),
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Write a version.
    Put {
        /// Its tag. For a put without a response it is a placeholder that nothing matches, unless a client has read the
        /// version.
        tag: Tag,
        /// Its condition.
        condition: Condition,
    },
    /// Delete the object.
    Delete {
        /// Its condition, which counts as met if the key does not exist (API Reference, DeleteObject).
        condition: Condition,
    },
    /// GET, HEAD, or the entry of the key in a list.
    Read,
}

/// A response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The write was applied.
    Done,
    /// 412: the condition did not hold.
    Refused,
    /// A read found this version.
    Found(Tag),
    /// The key did not exist: a read, or the `If-Match` of a put.
    Nothing,
    /// None, or one that does not tell whether the write was applied.
    Unknown,
}

/// An operation on one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The client that sent it.
    pub client: u32,
    /// Nanoseconds from the beginning of the history to just before the request was sent.
    pub invoked: u64,
    /// Nanoseconds to just after the response was read. Meaningless if the response is unknown.
    pub returned: u64,
    /// The request.
    pub call: Call,
    /// The response.
    pub answer: Answer,
}

impl Operation {
    /// Returns the state of the key after the operation if it takes effect in `state`; `None` if the response would have been
    /// different.
    #[must_use]
    pub fn apply(&self, state: Option<Tag>) -> Option<Option<Tag>> {
        let holds = |condition| match condition {
            Condition::Always => true,
            Condition::Absent => state.is_none(),
            Condition::Is(tag) => state == Some(tag),
        };
        let (after, possible) = match self.call {
            Call::Read => match self.answer {
                Answer::Found(tag) => (state, state == Some(tag)),
                Answer::Nothing => (state, state.is_none()),
                _ => (state, false),
            },
            Call::Put { tag, condition } => match self.answer {
                Answer::Done => (Some(tag), holds(condition)),
                Answer::Unknown => (if holds(condition) { Some(tag) } else { state }, true),
                Answer::Refused => (state, !holds(condition) && state.is_some()),
                Answer::Nothing => (state, matches!(condition, Condition::Is(_)) && state.is_none()),
                Answer::Found(_) => (state, false),
            },
            Call::Delete { condition } => match self.answer {
                Answer::Done => (None, holds(condition) || state.is_none()),
                Answer::Unknown => (if holds(condition) { None } else { state }, true),
                Answer::Refused => (state, !holds(condition) && state.is_some()),
                Answer::Nothing | Answer::Found(_) => (state, false),
            },
        };
        possible.then_some(after)
    }
}
