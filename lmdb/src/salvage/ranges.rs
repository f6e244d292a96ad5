//! Ranges of keys whose records may be lost.

/// Keys from `from` on, up to and without `to`. Without `to`, all that follow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostRange {
    /// The first key that may be lost.
    pub from: Vec<u8>,
    /// The first key after it that is not.
    pub to: Option<Vec<u8>>,
}

impl LostRange {
    /// All keys of a table.
    #[must_use]
    pub const fn all() -> Self {
        Self { from: Vec::new(), to: None }
    }

    /// Returns whether a key is within the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.from <= *key && self.to.as_ref().is_none_or(|to| key < &**to)
    }

    /// Returns whether the range has a key between `from` and `to`.
    #[must_use]
    pub fn overlaps(&self, from: &[u8], to: &[u8]) -> bool {
        *self.from < *to && self.to.as_ref().is_none_or(|end| from < &**end)
    }
}

/// Ranges in order, which do not touch.
#[derive(Clone, Default, Debug)]
pub struct LostRanges(Vec<LostRange>);

impl LostRanges {
    /// Adds a range. Usually it begins after those that were added.
    pub(super) fn push(&mut self, range: LostRange) {
        let is_next = self.0.last().is_none_or(|last| last.to.as_ref().is_some_and(|to| *to < range.from));
        self.0.push(range);
        if is_next {
            return;
        }
        self.0.sort_by(|one, other| one.from.cmp(&other.from));
        self.0.dedup_by(|next, before| {
            let touches = before.to.as_ref().is_none_or(|to| next.from <= *to);
            if touches {
                let ends_later = |to: &Vec<u8>| next.to.as_ref().is_none_or(|next| next > to);
                if before.to.as_ref().is_some_and(ends_later) {
                    before.to = next.to.take();
                }
            }
            touches
        });
    }

    /// Returns the ranges.
    #[must_use]
    pub fn all(&self) -> &[LostRange] {
        &self.0
    }

    /// Returns whether a key may be lost.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let after = self.0.partition_point(|range| *range.from <= *key);
        after.checked_sub(1).is_some_and(|at| self.0[at].contains(key))
    }

    /// Returns whether a key between `from` and `to` may be lost.
    #[must_use]
    pub fn overlap(&self, from: &[u8], to: &[u8]) -> bool {
        let before = self.0.partition_point(|range| *range.from < *to);
        before.checked_sub(1).is_some_and(|at| self.0[at].overlaps(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::{LostRange, LostRanges};

    #[test]
    fn ranges_that_touch_are_one() {
        let mut ranges = LostRanges::default();
        for (from, to) in [("b", "d"), ("c", "e"), ("e", "f"), ("m", "n")] {
            ranges.push(LostRange { from: from.into(), to: Some(to.into()) });
        }
        assert_eq!(ranges.all().len(), 2);
        for (key, is_lost) in
            [("a", false), ("b", true), ("ez", true), ("f", false), ("mm", true), ("n", false)]
        {
            assert_eq!(ranges.contains(key.as_bytes()), is_lost, "{key}");
        }
        assert!(ranges.overlap(b"f", b"ma") && !ranges.overlap(b"f", b"m") && !ranges.overlap(b"n", b"z"));
        ranges.push(LostRange { from: b"a".to_vec(), to: Some(b"c".to_vec()) });
        assert!(ranges.contains(b"a") && ranges.contains(b"e") && ranges.all().len() == 2);
        ranges.push(LostRange { from: b"x".to_vec(), to: None });
        assert!(ranges.contains(b"zzz") && ranges.overlap(b"y", b"z"));
    }
}
