//! A set of prefixes that answers with one binary search whether any of them begins a text.
//!
//! Invariant: sorted, and no prefix begins another. Then the only one that can begin a text is the greatest that is not
//! greater than the text: any other between the two would begin with that one.

/// See the file's first lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PrefixSet(Vec<Box<str>>);

impl PrefixSet {
    /// The set of these prefixes; those that a shorter one makes needless are left out.
    pub(super) fn new(mut prefixes: Vec<Box<str>>) -> Self {
        prefixes.sort_unstable();
        // A prefix stands in front of everything that begins with it, and nothing else stands between.
        prefixes.dedup_by(|later, kept| later.starts_with(&**kept));
        Self(prefixes)
    }

    /// Whether any of the prefixes begins `text`.
    pub(super) fn begins(&self, text: &str) -> bool {
        let behind = self.0.partition_point(|prefix| **prefix <= *text);
        behind.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|prefix| text.starts_with(&**prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::PrefixSet;
    use proptest::prelude::*;

    #[test]
    fn needless_prefixes_are_left_out() {
        let set = PrefixSet::new(["b/c", "a", "ab", "b", "a", "c/"].map(Into::into).into());
        assert_eq!(set.0, ["a", "b", "c/"].map(Into::into));
        assert_eq!(PrefixSet::new(["x", "", "y"].map(Into::into).into()).0, [Box::from("")]);
    }

    proptest! {
        #[test]
        fn the_binary_search_finds_what_a_walk_finds(
            prefixes in proptest::collection::vec("[ab/é]{0,5}", 0..12), text in "[ab/é]{0,8}"
        ) {
            let set = PrefixSet::new(prefixes.iter().map(|prefix| prefix.as_str().into()).collect());
            let walked = prefixes.iter().any(|prefix| text.starts_with(prefix));
            prop_assert_eq!(set.begins(&text), walked);
        }
    }
}
