//! Reads values of keys as their types, and collects the problems.

use std::time::Duration;

use super::key::Key;
use super::problem::Problem;
use super::sources::Values;
use super::value::{BindAddress, Value, expected};

/// Reads single values. A value of the wrong type becomes a problem of its key.
pub(super) struct Reader<'a> {
    pub(super) values: &'a Values,
    pub(super) problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn read<T>(
        &mut self,
        key: &'static Key,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let converted = self.values.get(key).and_then(convert);
        if converted.is_none() {
            self.problems
                .push(Problem::Invalid { name: self.values.source(key), expected: expected(key.kind) });
        }
        converted
    }

    pub(super) fn optional<T>(
        &mut self,
        key: &'static Key,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.values.get(key).is_none() { Some(None) } else { self.read(key, convert).map(Some) }
    }

    pub(super) fn address(&mut self, key: &'static Key) -> Option<BindAddress> {
        self.read(key, |value| if let Value::Address(address) = value { Some(address.clone()) } else { None })
    }

    pub(super) fn flag(&mut self, key: &'static Key) -> Option<bool> {
        self.read(key, |value| if let Value::Flag(flag) = value { Some(*flag) } else { None })
    }

    /// Reads one of `all` by its name.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static Key,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        self.read(key, |value| {
            all.iter().copied().find(|known| matches!(value, Value::Text(word) if word == name(*known)))
        })
    }

    pub(super) fn number<N: TryFrom<u64>>(&mut self, key: &'static Key) -> Option<N> {
        self.read(key, number)
    }

    pub(super) fn seconds(&mut self, key: &'static Key) -> Option<Duration> {
        self.number(key).map(Duration::from_secs)
    }
}

/// Converts a number, if it fits.
pub(super) fn number<N: TryFrom<u64>>(value: &Value) -> Option<N> {
    if let Value::Number(number) = value { N::try_from(*number).ok() } else { None }
}
