//! Puts versions and delete markers that are listed apart in order.
//!
//! S3 lists both together, newest first within a key. Some stores list all markers of a page and all versions apart; their
//! history is put together again.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use super::listing::Entry;

/// Length of a ULID, whose first digits are its time.
const ULID_DIGITS: usize = 26;

/// Puts the entries of a page in order if the store lists markers and versions apart. `mixes` notes that it does not.
pub(super) fn put_in_order(entries: &mut Vec<Entry>, mixes: &AtomicBool) {
    let changes = entries.windows(2).filter(|pair| pair[0].is_marker != pair[1].is_marker).count();
    if changes > 1 {
        mixes.store(true, Memory::Relaxed);
    }
    if changes != 1 || mixes.load(Memory::Relaxed) {
        return;
    }
    let second = entries.iter().position(|entry| entry.is_marker != entries[0].is_marker).unwrap_or(0);
    if !is_apart(entries, second) {
        return;
    }
    let mut others = entries.split_off(second).into_iter().peekable();
    let mut one = std::mem::take(entries).into_iter().peekable();
    while let (Some(left), Some(right)) = (one.peek(), others.peek()) {
        let is_left = match left.key.as_bytes().cmp(right.key.as_bytes()) {
            Ordering::Equal => is_newer(left, right),
            order => order.is_lt(),
        };
        entries.extend(if is_left { one.next() } else { others.next() });
    }
    entries.extend(one.chain(others));
}

/// Returns whether the second kind, which begins at `second`, cannot be behind the first one in one history.
fn is_apart(entries: &[Entry], second: usize) -> bool {
    let (first, others) = entries.split_at(second);
    let is_ascending =
        |part: &[Entry]| part.is_sorted_by(|one, next| one.key.as_bytes() <= next.key.as_bytes());
    // Other orders of keys than that of their bytes are left as they are.
    let (true, true, Some(last), Some(next)) =
        (is_ascending(first), is_ascending(others), first.last(), others.first())
    else {
        return false;
    };
    match last.key.as_bytes().cmp(next.key.as_bytes()) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => {
            let newest = first.iter().find(|entry| entry.key == last.key);
            let is_above = next.is_latest && newest.is_some_and(|newest| !newest.is_latest);
            is_above || seconds(next) > seconds(last)
        }
    }
}

/// Returns whether a version is newer than a delete marker of the same key, or the other way round.
fn is_newer(one: &Entry, other: &Entry) -> bool {
    if one.is_latest != other.is_latest {
        return one.is_latest;
    }
    // Dates of versions are often whole seconds, where those of markers have fractions.
    let has_fractions = ![one, other].iter().any(|entry| entry.modified.is_multiple_of(1000));
    let dates = |entry: &Entry| if has_fractions { entry.modified } else { seconds(entry) };
    let ids = || is_ulid(one.id()) && is_ulid(other.id());
    match dates(one).cmp(&dates(other)) {
        Ordering::Equal if ids() => one.id() > other.id(),
        // Most markers are written after what they delete.
        Ordering::Equal => one.is_marker,
        order => order.is_gt(),
    }
}

fn seconds(entry: &Entry) -> u64 {
    entry.modified / 1000
}

fn is_ulid(id: &str) -> bool {
    id.len() == ULID_DIGITS && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `key id date`, with `!` behind the id of a marker and `*` behind that of the current version.
    fn entry(text: &str) -> Entry {
        let words: Vec<_> = text.split(' ').collect();
        let [key, id, date] = words[..] else { panic!("{text}") };
        Entry {
            key: key.to_owned(),
            version_id: Some(id.trim_end_matches(['!', '*']).to_owned()),
            is_marker: id.contains('!'),
            is_latest: id.ends_with('*'),
            etag: String::new(),
            size: 0,
            modified: date.parse().expect("a date"),
            has_client_key: false,
            settings: None,
        }
    }

    fn ordered(texts: &[&str], mixes: &AtomicBool) -> Vec<String> {
        let mut entries: Vec<_> = texts.iter().copied().map(entry).collect();
        put_in_order(&mut entries, mixes);
        entries.iter().map(|entry| format!("{}{}", entry.key, entry.id())).collect()
    }

    #[test]
    fn markers_that_are_listed_apart_go_where_they_belong() {
        // As versitygw lists them: markers first, with fractions of seconds that versions lack.
        let page = ["a m1! 2500", "b m2!* 9100", "a v3* 2000", "a v2 2000", "a v1 1000", "b v1 8000"];
        assert_eq!(ordered(&page, &AtomicBool::new(false)), ["av3", "am1", "av2", "av1", "bm2", "bv1"]);
        let versions_first = ["a v2* 9000", "a v1 1000", "b v1 2000", "a m1! 5000", "b m1!* 3000"];
        assert_eq!(ordered(&versions_first, &AtomicBool::new(false)), ["av2", "am1", "av1", "bm1", "bv1"]);
        // Within a second, ids that contain the time tell.
        let (old, middle, new) =
            ("01M8D0BZ10XR5FQAVA1FC09HE7", "01M8D0BZ22JSDNFN0W0S969DRG", "01M8D0BZ27G3HQC0QTT2ZS832P");
        let page = [format!("a {middle}! 1606"), format!("a {new}* 1000"), format!("a {old} 1000")];
        let page: Vec<_> = page.iter().map(String::as_str).collect();
        assert_eq!(ordered(&page, &AtomicBool::new(false)), [new, middle, old].map(|id| format!("a{id}")));
    }

    #[test]
    fn what_may_be_in_order_stays() {
        for page in [
            // A marker behind the versions of earlier keys, and one that is the oldest of its key.
            &["a v2* 2000", "a v1 1000", "b m1!* 1000"][..],
            &["a v2* 2000", "a v1 1000", "a m0! 1000", "b m1!* 9000"],
            // Keys in another order than that of their bytes.
            &["b v1* 1000", "a v1* 1000", "a m1! 9000"],
            &["a v1* 1000", "b v1* 1000"],
            &[],
        ] {
            let before: Vec<_> =
                page.iter().map(|text| entry(text)).map(|one| format!("{}{}", one.key, one.id())).collect();
            assert_eq!(ordered(page, &AtomicBool::new(false)), before);
        }
        // A store that has been seen to list both together keeps its order, whatever the dates say.
        let mixes = AtomicBool::new(false);
        ordered(&["a m1!* 3000", "a v1 1000", "b m1!* 1000"], &mixes);
        assert!(mixes.load(Memory::Relaxed));
        assert_eq!(ordered(&["a m2! 1000", "a m1! 1000", "a v1 2000"], &mixes), ["am2", "am1", "av1"]);
    }
}
