//! Compares the history of a key with that at the target.

/// A version as both stores see it: its entity tag and length; `None` for a delete marker.
pub(super) type Step = Option<(String, u64)>;

/// The part of a history that the target has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Common {
    /// The target's newest step is the last of so many of ours. Those after them can be added.
    pub(super) count: usize,
    /// Those of them that the target does not have, because they could not be read when the others were sent.
    pub(super) missing: Vec<usize>,
}

/// Compares our steps with the target's, all oldest first. Steps that were removed here may still be there. `None` if the
/// target's newest step is none of ours, so that ours cannot be added.
pub(super) fn common(ours: &[Step], there: &[Step]) -> Option<Common> {
    let Some((newest, before)) = there.split_last() else { return Some(Common::default()) };
    let mut count = 0;
    for step in before {
        if ours.get(count) == Some(step) {
            count += 1;
        }
    }
    // The newest one is one of ours, and all of ours before it are there.
    let whole = (1..=(count + 1).min(ours.len())).rev().find(|number| ours[number - 1] == *newest);
    whole.map(|count| Common { count, missing: Vec::new() }).or_else(|| with_gaps(ours, there))
}

/// Finds the target's steps among ours, one after the other.
fn with_gaps(ours: &[Step], there: &[Step]) -> Option<Common> {
    let (mut found, mut is_newest_ours) = (Vec::new(), false);
    for step in there {
        let from = found.last().map_or(0, |last| last + 1);
        let place = ours[from..].iter().position(|own| own == step);
        is_newest_ours = place.is_some();
        found.extend(place.map(|place| from + place));
    }
    let count = found.last().filter(|_| is_newest_ours)? + 1;
    Some(Common { count, missing: (0..count).filter(|index| found.binary_search(index).is_err()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        text.chars().map(|one| (one != '-').then(|| (one.to_string(), 1))).collect()
    }

    #[test]
    fn the_rest_of_a_history_is_found() {
        for (ours, there, count) in [
            ("abc", "", Some(0)),
            ("abc", "a", Some(1)),
            ("abc", "abc", Some(3)),
            ("a-c", "a-", Some(2)),
            ("aa", "a", Some(1)),
            // `ab` was removed here.
            ("cd", "abc", Some(1)),
            ("cd", "abcd", Some(2)),
            ("ba", "ab", Some(1)),
            // Those between were removed here.
            ("nssmal", "nsssma", Some(5)),
            ("ad", "abcd", Some(2)),
            ("aba", "ab", Some(2)),
            ("aba", "aba", Some(3)),
            ("abc", "x", None),
            ("abc", "abcx", None),
            ("-", "a", None),
            ("", "a", None),
        ] {
            let expected = count.map(|count| Common { count, missing: Vec::new() });
            assert_eq!(common(&steps(ours), &steps(there)), expected, "{ours} {there}");
        }
    }

    #[test]
    fn versions_that_could_not_be_sent_are_known() {
        for (ours, there, count, missing) in
            [("xbc", "b", 2, vec![0]), ("abc", "ac", 3, vec![1]), ("xbyd", "bd", 4, vec![0, 2])]
        {
            assert_eq!(
                common(&steps(ours), &steps(there)),
                Some(Common { count, missing }),
                "{ours} {there}"
            );
        }
    }
}
