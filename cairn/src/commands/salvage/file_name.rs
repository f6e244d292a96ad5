//! Names of files for keys of objects.

use cairn_engine::block_check;

/// Longest part of a path that is made of a key. File systems allow 255 bytes, and the name of a version is appended.
const PART_BYTES_MAX: usize = 150;
/// Characters that some file system, shell or archive program treats specially.
const SPECIAL: &str = "%\\:*?\"<>|";

/// Returns the path of a key below its bucket's folder: its parts between slashes, in which special characters are encoded as
/// `%` and two digits. Different keys may have the same path, if a part is long.
pub(super) fn path_of(key: &[u8]) -> Vec<String> {
    key.split(|byte| *byte == b'/').map(part_of).collect()
}

/// Returns another name for a key, whose path cannot be used.
pub(super) fn other_name(key: &[u8], attempt: u32) -> String {
    format!("%key-{:016x}-{attempt}", block_check(key))
}

fn part_of(part: &[u8]) -> String {
    let mut name = String::new();
    for chunk in part.utf8_chunks() {
        chunk.valid().chars().for_each(|letter| push(&mut name, letter));
        chunk.invalid().iter().for_each(|byte| encode(&mut name, *byte));
    }
    // Names of dots have a meaning, and a last dot or space is dropped by some systems.
    if name.ends_with(['.', ' ']) {
        let last = name.pop();
        encode(&mut name, if last == Some('.') { b'.' } else { b' ' });
    }
    if name.is_empty() {
        return "%".to_owned();
    }
    if name.len() > PART_BYTES_MAX {
        name.truncate(name.floor_char_boundary(PART_BYTES_MAX));
        name.push_str(&format!("%-{:016x}", block_check(part)));
    }
    name
}

fn push(name: &mut String, letter: char) {
    if letter.is_control() || SPECIAL.contains(letter) {
        let mut bytes = [0; 4];
        letter.encode_utf8(&mut bytes).bytes().for_each(|byte| encode(name, byte));
    } else {
        name.push(letter);
    }
}

fn encode(name: &mut String, byte: u8) {
    name.push_str(&format!("%{byte:02X}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_keys_stay_within_their_folder() {
        let names = [
            (&b"photos/2026/a b.jpg"[..], "photos/2026/a b.jpg"),
            (b"../../etc/passwd", ".%2E/.%2E/etc/passwd"),
            (b"/a//b/", "%/a/%/b/%"),
            (b".", "%2E"),
            (b"a%2Fb:\x00\n\xff", "a%252Fb%3A%00%0A%FF"),
            ("Grüße 🌍".as_bytes(), "Grüße 🌍"),
            (b"end. ", "end.%20"),
        ];
        for (key, expected) in names {
            assert_eq!(path_of(key).join("/"), expected);
        }
        let long = path_of("é".repeat(500).as_bytes()).concat();
        assert!(long.len() < 200 && long.contains("%-"), "{long}");
        assert_ne!(long, path_of("é".repeat(501).as_bytes()).concat());
    }
}
