//! Keys that divide a list into ranges of about a page.

/// Versions of a range: less than a page of a source, so that a page reaches beyond its range and shows that it is complete.
const RANGE_VERSIONS: usize = 950;
/// Most bounds, which are in memory.
const BOUNDS_MAX: usize = 10_000;

/// Bounds that are being found.
pub(super) struct Bounds {
    keys: Vec<String>,
    last: Option<String>,
    /// Versions since the last bound.
    since: usize,
    /// Versions of a range. Longer lists have longer ranges.
    range: usize,
    is_ordered: bool,
}

impl Bounds {
    pub(super) const fn new() -> Self {
        Self { keys: Vec::new(), last: None, since: 0, range: RANGE_VERSIONS, is_ordered: true }
    }

    /// Adds the key of the next version.
    pub(super) fn add(&mut self, key: String) {
        match self.last.take() {
            Some(last) if last == key => {}
            Some(last) => {
                self.is_ordered &= last.as_bytes() < key.as_bytes();
                if self.since >= self.range {
                    self.push(last);
                }
            }
            None => {}
        }
        self.since += 1;
        self.last = Some(key);
    }

    fn push(&mut self, key: String) {
        self.keys.push(key);
        self.since = 0;
        if self.keys.len() == BOUNDS_MAX {
            let mut number = 0;
            self.keys.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.range *= 2;
        }
    }

    /// Returns the last key of each range except the final one, or an empty list if the keys are not in byte order.
    pub(super) fn finish(self) -> Vec<String> {
        if self.is_ordered { self.keys } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(keys: impl Iterator<Item = String>) -> Vec<String> {
        let mut bounds = Bounds::new();
        keys.for_each(|key| bounds.add(key));
        bounds.finish()
    }

    #[test]
    fn ranges_end_between_keys() {
        let key = |number: usize| format!("{number:08}");
        assert_eq!(bounds((0..RANGE_VERSIONS).map(key)), [""; 0]);
        assert_eq!(bounds((0..2 * RANGE_VERSIONS).map(key)), [key(RANGE_VERSIONS - 1)]);
        // Two versions of each key.
        let twice = bounds((0..2 * RANGE_VERSIONS).map(|number| key(number / 2)));
        assert_eq!(twice, [key(RANGE_VERSIONS / 2 - 1)]);
        assert_eq!(bounds((0..2 * RANGE_VERSIONS).rev().map(key)), [""; 0]);
    }

    #[test]
    fn long_lists_have_long_ranges() {
        let count = (BOUNDS_MAX + 10) * RANGE_VERSIONS;
        let found = bounds((0..count).map(|number| format!("{number:08}")));
        assert!(found.len() <= BOUNDS_MAX / 2 + 10 && found.is_sorted(), "{}", found.len());
    }
}
