//! A set of prefixes with a lookup by one binary search.

/// A set of prefixes.
///
/// Invariant: sorted, and no prefix is a prefix of another. The only prefix that a text can have is then the greatest one
/// that is not greater than the text: any other prefix between the two would begin with it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PrefixSet(Vec<Box<str>>);

impl PrefixSet {
    /// Makes a set of these prefixes without the ones that a shorter prefix makes redundant.
    pub(super) fn new(mut prefixes: Vec<Box<str>>) -> Self {
        prefixes.sort_unstable();
        // In sorted order a prefix is directly followed by everything that begins with it.
        prefixes.dedup_by(|later, kept| later.starts_with(&**kept));
        Self(prefixes)
    }

    /// Returns whether `text` begins with any of the prefixes.
    pub(super) fn has_prefix_of(&self, text: &str) -> bool {
        let after = self.0.partition_point(|prefix| **prefix <= *text);
        self.0[..after].last().is_some_and(|prefix| text.starts_with(&**prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::PrefixSet;
    use proptest::prelude::*;

    #[test]
    fn redundant_prefixes_are_removed() {
        let set = PrefixSet::new(["b/c", "a", "ab", "b", "a", "c/"].map(Into::into).into());
        assert_eq!(set.0, ["a", "b", "c/"].map(Into::into));
        assert_eq!(PrefixSet::new(["x", "", "y"].map(Into::into).into()).0, [Box::from("")]);
    }

    proptest! {
        #[test]
        fn binary_search_agrees_with_a_linear_scan(
            prefixes in proptest::collection::vec("[ab/é]{0,5}", 0..12), text in "[ab/é]{0,8}"
        ) {
            let set = PrefixSet::new(prefixes.iter().map(|prefix| prefix.as_str().into()).collect());
            let scanned = prefixes.iter().any(|prefix| text.starts_with(prefix));
            prop_assert_eq!(set.has_prefix_of(&text), scanned);
        }
    }
}
