//! The keys that a run works on: numbered names, or the names that a list found.
//!
//! Numbered names have ten digits, so their order as strings is the order of their numbers; with folders the folder's
//! number comes first and the order stays. Lists are checked against that.

use std::fmt::Write as _;

use crate::sizes::Sizes;
use crate::units::ByteCount;

/// Names and sizes of the keys of one run.
#[derive(Clone, Debug)]
pub struct KeySpace {
    /// In front of every name.
    pub prefix: String,
    /// Number of keys.
    pub count: u64,
    /// Keys per folder; 0 for no folders.
    pub folder_keys: u64,
    /// Seed of the sizes.
    pub seed: u64,
    /// Sizes of the objects.
    pub sizes: Sizes,
    /// Names found on the server, which then replace the numbered ones.
    pub listed: Option<Vec<String>>,
}

impl KeySpace {
    /// Writes the name of a key into `name`, replacing what was there.
    pub fn write_name(&self, number: u64, name: &mut String) {
        name.clear();
        if let Some(listed) = &self.listed {
            name.push_str(&listed[crate::units::index(number)]);
            return;
        }
        name.push_str(&self.prefix);
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
        self.sizes.of(self.seed, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_numbers_with_and_without_folders() {
        for folder_keys in [0, 1, 7, 1_000] {
            let space = KeySpace {
                prefix: "p/".into(),
                count: 3_000,
                folder_keys,
                seed: 0,
                sizes: Sizes::Fixed(ByteCount(1)),
                listed: None,
            };
            let names: Vec<String> = (0..space.count).map(|number| space.name(number)).collect();
            assert!(names.is_sorted());
            assert!(names[0].starts_with("p/"));
        }
    }
}
