//! Names of archive entries for keys: safe to unpack, and different from each other.
//!
//! A key may be any text. A name is a relative path whose parts the file systems of Unix can hold: no part is empty, `.` or
//! `..` or has more than 255 bytes, no character is a backslash or a control character, and the first part is no drive.
//! Windows allows less, such as no `:` and no `CON`; programs that unpack there choose other names. A key that is a file for
//! one object and a folder for others becomes two names. So does a name that several keys would get.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Longest part of a name, in bytes: what Linux and the BSDs can hold. macOS and Windows count characters, up to as many.
const PART_BYTES_MAX: usize = 255;
/// Longest extension that stays at the end of a changed name, in bytes with its dot. What is longer is part of a sentence.
const EXTENSION_BYTES_MAX: usize = 32;
/// Bytes that a remembered path counts for, with what the table takes.
const PATH_BYTES: usize = 32;

/// The names that an archive has so far. Of each path, a hash is remembered.
#[derive(Default)]
pub struct ArchiveNames {
    hasher: RandomState,
    files: HashSet<u64>,
    folders: HashSet<u64>,
    /// Folders whose names are those of files, with the numbers that tell them apart.
    renamed: HashMap<u64, u64>,
    /// The last number that was tried.
    number: u64,
}

impl ArchiveNames {
    /// Returns the name for an object: the end of its key, below a prefix. An empty object whose key ends with a slash is a
    /// folder; `None` if the archive has it already, or if it is the prefix itself.
    pub fn name_of(&mut self, below: &str, size: u64) -> Option<String> {
        let mut parts: Vec<&str> = below.split('/').collect();
        let is_folder = size == 0 && below.ends_with('/');
        if parts.len() > 1 && below.ends_with('/') {
            parts.pop();
        }
        if below.is_empty() && size == 0 {
            return None;
        }
        let last = if is_folder { None } else { parts.pop() };
        let (mut path, mut hash, mut is_new) = (String::new(), self.hasher.build_hasher(), false);
        for part in parts {
            let part = shortened(clean(part, path.is_empty()), true);
            (hash, is_new) = self.folder(&mut path, &hash, &part);
        }
        match last {
            None => is_new.then_some(path),
            Some(last) => {
                let last = shortened(clean(last, path.is_empty()), false);
                self.file(&mut path, &hash, &last);
                Some(path)
            }
        }
    }

    /// Returns how many bytes the names take, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.files.len() + self.folders.len() + self.renamed.len()) * PATH_BYTES
    }

    /// Appends a folder to a path. Returns the state of the hash after it, and whether the archive did not have it.
    fn folder<H: Hasher + Clone>(&mut self, path: &mut String, parent: &H, part: &str) -> (H, bool) {
        let plain = with(parent, part);
        let mut name = part.to_owned();
        let mut hash = plain.clone();
        if let Some(number) = self.renamed.get(&plain.finish()) {
            name = numbered(part, *number, true);
            hash = with(parent, &name);
        } else if self.files.contains(&plain.finish()) {
            let number;
            (name, hash, number) = self.free(parent, part, true);
            self.renamed.insert(plain.finish(), number);
        }
        let is_new = self.folders.insert(hash.finish());
        path.push_str(&name);
        path.push('/');
        hash.write_u8(b'/');
        (hash, is_new)
    }

    /// Appends a file to a path.
    fn file<H: Hasher + Clone>(&mut self, path: &mut String, parent: &H, part: &str) {
        let plain = with(parent, part);
        let (name, hash) = if self.is_taken(plain.finish()) {
            let (name, hash, _) = self.free(parent, part, false);
            (name, hash)
        } else {
            (part.to_owned(), plain)
        };
        self.files.insert(hash.finish());
        path.push_str(&name);
    }

    fn is_taken(&self, hash: u64) -> bool {
        self.files.contains(&hash) || self.folders.contains(&hash)
    }

    /// Returns a name that is not taken, the state of the hash after it, and the number in it. Numbers are not tried twice,
    /// so that many equal names do not take quadratic time.
    fn free<H: Hasher + Clone>(&mut self, parent: &H, part: &str, is_folder: bool) -> (String, H, u64) {
        loop {
            self.number += 1;
            let name = numbered(part, self.number + 1, is_folder);
            let hash = with(parent, &name);
            if !self.is_taken(hash.finish()) {
                return (name, hash, self.number + 1);
            }
        }
    }
}

fn with<H: Hasher + Clone>(parent: &H, part: &str) -> H {
    let mut hash = parent.clone();
    hash.write(part.as_bytes());
    hash
}

/// Returns a name with a number, of a file before its extension.
fn numbered(part: &str, number: u64, is_folder: bool) -> String {
    with_addition(part, &format!(" ({number})"), is_folder)
}

/// Returns a name of at most [`PART_BYTES_MAX`].
fn shortened(part: String, is_folder: bool) -> String {
    if part.len() <= PART_BYTES_MAX { part } else { with_addition(&part, "", is_folder) }
}

/// Returns the beginning of a name, an addition, and the extension of a file: at most [`PART_BYTES_MAX`] together.
fn with_addition(part: &str, addition: &str, is_folder: bool) -> String {
    let is_extension = |dot: &usize| !is_folder && *dot > 0 && part.len() - dot <= EXTENSION_BYTES_MAX;
    let (stem, extension) = part.split_at(part.rfind('.').filter(is_extension).unwrap_or(part.len()));
    let room = PART_BYTES_MAX - extension.len() - addition.len();
    format!("{}{addition}{extension}", &stem[..stem.floor_char_boundary(room)])
}

/// Returns a part of a path without what is not safe in a name.
fn clean(part: &str, is_first: bool) -> String {
    if part.bytes().all(|byte| byte == b'.') {
        return if part.len() <= 2 { "_".repeat(part.len().max(1)) } else { part.to_owned() };
    }
    let mut cleaned = part.replace(|character: char| character == '\\' || character.is_control(), "_");
    // `C:` is a drive for some programs.
    let is_drive = cleaned.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if is_first && is_drive && cleaned.as_bytes().get(1) == Some(&b':') {
        cleaned.replace_range(1..2, "_");
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    fn names(keys: &[(&str, u64)]) -> Vec<Option<String>> {
        let mut names = ArchiveNames::default();
        keys.iter().map(|(key, size)| names.name_of(key, *size)).collect()
    }

    #[test]
    fn hostile_keys_become_safe_names() {
        for (key, name) in [
            ("a/b.txt", "a/b.txt"),
            ("/etc/passwd", "_/etc/passwd"),
            ("../../x", "__/__/x"),
            ("a/./b", "a/_/b"),
            ("a//b", "a/_/b"),
            ("..\\..\\x", ".._.._x"),
            ("C:/x", "C_/x"),
            ("C:\\x", "C__x"),
            ("10:30/a:b", "10:30/a:b"),
            ("a\0b\nc", "a_b_c"),
            (".", "_"),
            ("..", "__"),
            ("...", "..."),
            ("ä/ö", "ä/ö"),
            ("folder/", "folder"),
        ] {
            assert_eq!(names(&[(key, 1)]), [Some(name.to_owned())], "{key:?}");
        }
    }

    #[test]
    fn names_that_would_be_equal_are_told_apart() {
        let found = names(&[("a\\b.txt", 1), ("a_b.txt", 1), ("a\nb.txt", 1), (".x\\", 1), (".x_", 1)]);
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, ["a_b.txt", "a_b (2).txt", "a_b (3).txt", ".x_", ".x_ (4)"]);
    }

    #[test]
    fn a_file_and_a_folder_of_the_same_name_are_told_apart() {
        let found = names(&[("a", 1), ("a/b", 1), ("a/c", 1), ("x/y", 1), ("x", 1)]);
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, ["a", "a (2)/b", "a (2)/c", "x/y", "x (3)"]);
    }

    #[test]
    fn empty_objects_that_end_with_a_slash_are_folders() {
        let found =
            names(&[("", 0), ("a/", 0), ("a/b", 1), ("a/", 0), ("c/d", 1), ("c/", 0), ("/", 0), ("", 1)]);
        let expected = [None, Some("a/"), Some("a/b"), None, Some("c/d"), None, Some("_/"), Some("_ (2)")];
        assert_eq!(found, expected.map(|name| name.map(str::to_owned)));
    }

    /// `unzip` could not create a file whose name had 900 bytes, so the object was missing.
    #[test]
    fn long_parts_are_shortened_and_stay_different() {
        let long = "x".repeat(900);
        let key = |end: &str| format!("{long}{end}");
        let keys = [
            key(""),
            key("1"),
            key("2.txt"),
            key("3.txt"),
            key("/a"),
            key("4/a"),
            format!("a{}", "ä".repeat(200)),
            format!("b.{long}"),
            ".".repeat(900),
        ];
        let mut names = ArchiveNames::default();
        let found: Vec<_> = keys.iter().filter_map(|key| names.name_of(key, 1)).collect();
        let x = |count: usize| "x".repeat(count);
        let expected = [
            x(255),
            x(251) + " (2)",
            x(251) + ".txt",
            x(247) + " (3).txt",
            x(251) + " (4)/a",
            x(251) + " (4)/a (5)",
            format!("a{}", "ä".repeat(127)),
            format!("b.{}", x(253)),
            ".".repeat(255),
        ];
        assert_eq!(found, expected);
        for number in 0..300 {
            let name = names.name_of(&key(&number.to_string()), 1).expect("a name");
            assert!(name.len() == 255 && name.ends_with(&format!(" ({})", number + 6)), "{name}");
        }
    }

    /// A loop over all numbers for each name would take minutes.
    #[test]
    fn many_equal_names_take_linear_time() {
        let mut names = ArchiveNames::default();
        let mut seen = HashSet::new();
        for number in 0..100_000_u32 {
            let characters = (0..17).map(|bit| if number >> bit & 1 == 0 { '\\' } else { '\n' });
            assert!(seen.insert(names.name_of(&characters.collect::<String>(), 1)));
        }
        assert!(names.bytes() >= 100_000 * PATH_BYTES);
    }

    proptest! {
        #[test]
        fn all_names_are_different_relative_paths(keys in prop::collection::vec("[ab./\\\\\n:]{1,6}(ä{130}[a.]{0,2})?", 1..40)) {
            let mut names = ArchiveNames::default();
            let (mut files, mut folders) = (HashSet::new(), HashSet::new());
            for key in keys {
                let name = names.name_of(&key, 1).expect("an object with content has a name");
                let parts: Vec<_> = Path::new(&name).components().collect();
                prop_assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{name}");
                prop_assert!(parts.iter().all(|part| part.as_os_str().len() <= PART_BYTES_MAX), "{name}");
                prop_assert_eq!(parts.len(), name.split('/').count());
                for (end, _) in name.match_indices('/') {
                    folders.insert(name[..end].to_owned());
                }
                prop_assert!(files.insert(name.clone()), "{name}");
                prop_assert!(files.is_disjoint(&folders), "{files:?} {folders:?}");
            }
        }
    }
}
