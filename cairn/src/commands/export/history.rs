//! Compares the history of a key with that at the target.

/// A version as both stores see it: its entity tag and length; `None` for a delete marker.
pub(super) type Step = Option<(String, u64)>;

/// Returns how many of our steps the target has already. All are oldest first. `None` if its newest step is none of ours, or
/// if it lacks some before it, so that ours cannot be added.
///
/// Steps that were removed here may still be there.
pub(super) fn common(ours: &[Step], there: &[Step]) -> Option<usize> {
    let Some((newest, before)) = there.split_last() else { return Some(0) };
    let mut count = 0;
    for step in before {
        if ours.get(count) == Some(step) {
            count += 1;
        }
    }
    // The newest one is one of ours after those before it.
    (1..=(count + 1).min(ours.len())).rev().find(|number| ours[number - 1] == *newest)
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
            // Those between were removed here.
            ("nssmal", "nsssma", Some(5)),
            ("ad", "abcd", Some(2)),
            ("aba", "ab", Some(2)),
            ("aba", "aba", Some(3)),
            ("abc", "ac", None),
            ("abc", "x", None),
            ("abc", "abcx", None),
            ("-", "a", None),
            ("", "a", None),
        ] {
            assert_eq!(common(&steps(ours), &steps(there)), count, "{ours} {there}");
        }
    }
}
