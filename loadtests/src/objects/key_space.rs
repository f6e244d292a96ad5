//! The keys of a run: numbered names, or the names from a list.
//!
//! Numbered names have ten digits, so they sort in the order of their numbers, also after the number of their folder. The
//! verification of lists depends on it. Scattered names have the digits of a permuted number instead: keys that are written one
//! after the other then lie anywhere among those that exist, as those of most applications do.

use std::fmt::Write as _;

use crate::objects::sizes::Sizes;
use crate::units::ByteCount;

/// Names and sizes of the keys of one run.
#[derive(Clone, Debug)]
pub struct KeySpace {
    /// Prefix of every name.
    pub prefix: String,
    /// Number of keys.
    pub count: u64,
    /// The number of the first key in names and sizes, so that several runs write parts of one key space.
    pub first: u64,
    /// Whether names are scattered.
    pub scatter: bool,
    /// Keys per folder; 0 for no folders.
    pub folder_keys: u64,
    /// Seed of the sizes.
    pub seed: u64,
    /// Sizes of the objects.
    pub sizes: Sizes,
    /// Names found on the server, which replace the numbered ones.
    pub listed: Option<Vec<String>>,
}

/// Scattered numbers are permuted among this many.
pub(crate) const SCATTERED_MAX: u64 = 1 << 32;

/// Permutes the numbers below [`SCATTERED_MAX`]: the finalizer of MurmurHash3, whose every step can be inverted.
const fn permuted(number: u64) -> u64 {
    let mut bits = number & (SCATTERED_MAX - 1);
    bits ^= bits >> 16;
    bits = (bits * 0x85eb_ca6b) & (SCATTERED_MAX - 1);
    bits ^= bits >> 13;
    bits = (bits * 0xc2b2_ae35) & (SCATTERED_MAX - 1);
    bits ^ (bits >> 16)
}

impl KeySpace {
    /// Writes the name of a key into `name`, replacing its content.
    pub fn write_name(&self, number: u64, name: &mut String) {
        name.clear();
        if let Some(listed) = &self.listed {
            name.push_str(&listed[crate::units::index(number)]);
            return;
        }
        name.push_str(&self.prefix);
        let number = self.first + number;
        let number = if self.scatter { permuted(number) } else { number };
        let written = match number.checked_div(self.folder_keys) {
            Some(folder) => write!(name, "{folder:06}/{number:010}"),
            None => write!(name, "{number:010}"),
        };
        written.expect("writing to a string does not fail");
    }

    /// The name of a key.
    #[must_use]
    pub fn name(&self, number: u64) -> String {
        let mut name = String::new();
        self.write_name(number, &mut name);
        name
    }

    /// The size of a key.
    #[must_use]
    pub fn size(&self, number: u64) -> ByteCount {
        self.sizes.of(self.seed, self.first + number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn space(count: u64) -> KeySpace {
        KeySpace {
            prefix: "p/".into(),
            count,
            first: 0,
            scatter: false,
            folder_keys: 0,
            seed: 0,
            sizes: Sizes::Fixed(ByteCount(1)),
            listed: None,
        }
    }

    #[test]
    fn names_sort_like_their_numbers() {
        for folder_keys in [0, 1, 7, 1_000] {
            let space = KeySpace { folder_keys, ..space(3_000) };
            let names: Vec<String> = (0..space.count).map(|number| space.name(number)).collect();
            assert!(names.is_sorted());
            assert!(names[0].starts_with("p/"));
        }
    }

    #[test]
    fn scattered_names_differ_and_runs_continue_each_other() {
        let whole = KeySpace { scatter: true, ..space(100_000) };
        let names: Vec<String> = (0..whole.count).map(|number| whole.name(number)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let rising = names.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((49_000..51_000).contains(&rising), "{rising} of the names are above the one before");
        let part = KeySpace { first: 60_000, count: 40_000, ..whole };
        assert_eq!(part.name(5), names[60_005]);
    }
}
