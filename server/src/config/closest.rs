//! Finds the known name that a misspelt one probably means.

/// Names that differ by more edits are not similar.
pub const EDITS_MAX: usize = 3;

/// Returns the known name that is most similar to an unknown one, if it differs by at most `edits_max` edits. Of a short name,
/// only half may differ; otherwise every short name would resemble every other.
pub fn closest(name: &str, known: impl Iterator<Item = String>, edits_max: usize) -> Option<String> {
    let edits_max = name.chars().count().div_ceil(2).min(edits_max);
    known
        .map(|candidate| (edits(name, &candidate), candidate))
        .filter(|(count, _)| *count <= edits_max)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance in bytes.
fn edits(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, left_byte) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, right_byte) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(left_byte != right_byte);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{EDITS_MAX, closest};

    #[test]
    fn only_a_similar_name_is_found() {
        let known = || ["bucket", "serve", "status", "list"].map(str::to_owned).into_iter();
        for (name, found) in [
            ("buckt", Some("bucket")),
            ("bukcet", Some("bucket")),
            ("srv", Some("serve")),
            ("ls", None),
            ("", None),
            ("everything", None),
        ] {
            assert_eq!(closest(name, known(), EDITS_MAX).as_deref(), found, "{name}");
        }
    }
}
