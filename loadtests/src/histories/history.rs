//! What clients did to one key and what they were told, with the times in between which each thing happened.

use serde::{Deserialize, Serialize};

/// The version of an object, as its entity tag names it: the bodies of a history are all different.
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
        // Behind a hyphen stands the number of parts, which tells nothing more apart.
        let digits = text.split_once('-').map_or(text.as_str(), |(digits, _)| digits);
        u128::from_str_radix(digits, 16).map(Self)
    }
}

/// What must hold for a write to be carried out.
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

/// What was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Write a version.
    Put {
        /// Its tag. Of a put that was never answered it is a guess that nothing matches, unless somebody has read it.
        tag: Tag,
        /// Its condition.
        condition: Condition,
    },
    /// Remove what is there.
    Delete {
        /// Its condition; on a key that is not there it counts as met (API Reference, DeleteObject).
        condition: Condition,
    },
    /// GET or HEAD, or what a list said of the key.
    Read,
}

/// What came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The write was carried out.
    Done,
    /// 412: the condition did not hold.
    Refused,
    /// A read found this version.
    Found(Tag),
    /// There was nothing: a read, or the `If-Match` of a put.
    Nothing,
    /// None, or one that leaves open whether the write was carried out.
    Unknown,
}

/// One request about one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Which client sent it.
    pub client: u32,
    /// Nanoseconds from the history's beginning to just before the request was sent.
    pub invoked: u64,
    /// ... to just after the answer had been read. Of no meaning when the answer is unknown.
    pub returned: u64,
    /// The request.
    pub call: Call,
    /// The answer.
    pub answer: Answer,
}

impl Operation {
    /// What the key holds after the operation, if it takes place when the key holds `state`; `None` when the answer would
    /// have been another.
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
