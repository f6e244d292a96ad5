//! The keys of a run: numbered names, or the names from a list.
//!
//! Numbered names have ten digits, so they sort in the order of their numbers, also after the number of their folder. The
//! verification of lists depends on it.

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
    /// Keys per folder; 0 for no folders.
    pub folder_keys: u64,
    /// Seed of the sizes.
    pub seed: u64,
    /// Sizes of the objects.
    pub sizes: Sizes,
    /// Names found on the server, which replace the numbered ones.
    pub listed: Option<Vec<String>>,
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
    fn names_sort_like_their_numbers() {
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
