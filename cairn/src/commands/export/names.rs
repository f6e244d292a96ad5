//! Paths of files for keys: readable, reversible, and different for different keys.
//!
//! A key is a path. Its parts are names of files if all systems allow them. In others, bytes are written as `%XX`, as is the
//! percent sign, so names with `%` and no such digits mean something else: `%_` an empty part, `%+` at the end of a folder a
//! part that goes on below it, `%d` at the end a folder whose name is also a key, `%v=` before an id a version of the file.

/// Longest name of a folder or file that is made of a part, in bytes. Ids of versions and temporary endings follow.
const NAME_BYTES_MAX: usize = 160;

/// The keys that the next key may begin with, in order. They are all that come before it in a sorted list.
#[cfg_attr(test, derive(Default))]
pub(super) struct Names {
    open: Vec<String>,
}

impl Names {
    /// Begins after these keys, each of which the next one begins with.
    pub(super) const fn new(open: Vec<String>) -> Self {
        Self { open }
    }

    /// Returns the path of a key's file, relative and with slashes. Keys must be given in order, each once.
    pub(super) fn path_of(&mut self, key: &str) -> String {
        while self.open.last().is_some_and(|open| !key.starts_with(open.as_str())) {
            self.open.pop();
        }
        let is_key = |folder: &str| self.open.iter().any(|open| open == folder);
        let mut path = String::new();
        for (end, part) in ends(key) {
            let is_last = end == key.len();
            let mut pieces = pieces(&encoded(part));
            let last = pieces.pop().unwrap_or_default();
            for piece in pieces {
                path.push_str(&piece);
                path.push_str("%+/");
            }
            path.push_str(&last);
            if !is_last {
                path.push_str(if is_key(&key[..end]) { "%d/" } else { "/" });
            }
        }
        self.open.push(key.to_owned());
        path
    }
}

/// Returns the name of a version's file beside that of the current object.
pub(super) fn version_path(path: &str, version: &str) -> String {
    format!("{path}%v={version}")
}

/// Returns the parts of a key, with the places where they end.
fn ends(key: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    key.split('/').map(move |part| {
        let found = end + part.len();
        end = found + 1;
        (found, part)
    })
}

/// Returns a part as a name that all systems allow. It may be too long.
fn encoded(part: &str) -> String {
    if part.is_empty() {
        return "%_".to_owned();
    }
    let is_dots = part.bytes().all(|byte| byte == b'.');
    let last = part.chars().count() - 1;
    let mut name = String::with_capacity(part.len());
    for (index, character) in part.chars().enumerate() {
        let is_special = matches!(character, '%' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
            || character.is_control()
            || is_dots
            || (index == last && matches!(character, '.' | ' '));
        if is_special {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                name.push_str(&format!("%{byte:02X}"));
            }
        } else {
            name.push(character);
        }
    }
    name
}

/// Cuts a name into pieces that are short enough.
fn pieces(name: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        // An encoded byte stays together.
        let length = if first == '%' { 3.min(rest.len()) } else { first.len_utf8() };
        let (character, after) = rest.split_at(length);
        if pieces.last().is_some_and(|piece| piece.len() + length > NAME_BYTES_MAX) {
            pieces.push(String::new());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(character);
        }
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::{Component, Path};

    fn paths(keys: &[&str]) -> Vec<String> {
        let mut names = Names::default();
        keys.iter().map(|key| names.path_of(key)).collect()
    }

    #[test]
    fn names_are_readable_where_they_can_be() {
        for (key, path) in [
            ("photos/2026/a b.jpg", "photos/2026/a b.jpg"),
            ("ä/ö", "ä/ö"),
            ("../x", "%2E%2E/x"),
            ("./x", "%2E/x"),
            ("...", "%2E%2E%2E"),
            (".hidden", ".hidden"),
            ("/a", "%_/a"),
            ("a//b", "a/%_/b"),
            ("a/", "a/%_"),
            ("100%", "100%25"),
            ("a%v=null", "a%25v=null"),
            ("10:30", "10%3A30"),
            ("end.", "end%2E"),
            ("a\0\n", "a%00%0A"),
            ("back\\slash", "back%5Cslash"),
        ] {
            assert_eq!(paths(&[key]), [path], "{key:?}");
        }
        assert_eq!(version_path("a", "null"), "a%v=null");
    }

    #[test]
    fn a_key_that_is_also_a_folder_has_two_names() {
        let keys = ["a", "a!", "a/", "a/b", "a/b/c", "a0", "b/c", "b/d"];
        let expected = ["a", "a!", "a%d/%_", "a%d/b", "a%d/b%d/c", "a0", "b/c", "b/d"];
        assert_eq!(paths(&keys), expected);
    }

    #[test]
    fn long_parts_go_on_in_folders() {
        let key = format!("{}/{}", "x".repeat(500), "\u{1}".repeat(500));
        let path = paths(&[&key]).remove(0);
        assert!(path.split('/').all(|name| name.len() <= NAME_BYTES_MAX + 2), "{path}");
        assert_eq!(path.replace("%+/", ""), format!("{}/{}", "x".repeat(500), "%01".repeat(500)));
    }

    #[test]
    fn different_keys_have_different_safe_paths() {
        let alphabet = ["a", "/", ".", "%", "\\", "%2", "d", "+", "_", "v=", " "];
        let mut keys: Vec<String> = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<_> =
                keys.iter().flat_map(|key| alphabet.iter().map(move |more| format!("{key}{more}"))).collect();
            keys.extend(longer);
            keys.sort_unstable();
            keys.dedup();
        }
        keys.retain(|key| !key.is_empty());
        let mut names = Names::default();
        let (mut files, mut folders) = (HashSet::new(), HashSet::new());
        for key in &keys {
            let path = names.path_of(key);
            assert!(Path::new(&path).components().all(|part| matches!(part, Component::Normal(_))), "{path}");
            for (end, _) in path.match_indices('/') {
                folders.insert(path[..end].to_owned());
            }
            assert!(files.insert(path.clone()), "{key:?} {path}");
        }
        assert!(files.is_disjoint(&folders));
    }
}
