//! Reads an exported zip file into memory, within limits. Nothing is unpacked to disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};

use zip::ZipArchive;

use crate::failure::Failure;
use crate::terminal::plain;

/// Longest file, in bytes. Secrets do not compress: an export of 100 000 users has about 10 MB.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Most entries: ten for each of 10 000 buckets.
const ENTRIES_MAX: usize = 100_000;
/// Longest entry, in bytes: the users of the largest export.
const ENTRY_BYTES_MAX: u64 = 64 << 20;
/// All entries together, in bytes. They are in memory at the same time.
const TOTAL_BYTES_MAX: u64 = 128 << 20;
/// Longest name of an entry, in bytes: that of a bucket, and a file name.
const NAME_BYTES_MAX: usize = 256;

/// The files of an archive by their names.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Reads all files of an archive. Folders are left out.
///
/// # Errors
/// The problem with the file: it is no archive, it is damaged or encrypted, or it exceeds a limit.
pub(super) fn read(path: &str) -> Result<Files, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::from(plain(&format!("the archive could not be read from {path}: {error}")))
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let length = file.metadata().map_err(|error| failed(&error))?.len();
    if length > FILE_BYTES_MAX {
        return Err(failed(&format!("it is longer than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| failed(&error))?;
    if archive.len() > ENTRIES_MAX {
        return Err(failed(&format!("it has more than {ENTRIES_MAX} entries")));
    }
    let (mut files, mut total) = (Files::new(), 0);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| failed(&error))?;
        let name = entry.name().map_err(|error| failed(&error))?.into_owned();
        if entry.is_dir() {
            continue;
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(failed(&format!("an entry has a name of more than {NAME_BYTES_MAX} bytes")));
        }
        // What the entry says about its length is not trusted.
        let limit = ENTRY_BYTES_MAX.min(TOTAL_BYTES_MAX - total);
        let mut content = Vec::new();
        let read = entry.take(limit + 1).read_to_end(&mut content);
        read.map_err(|error| failed(&format!("{name}: {error}")))?;
        let read = content.len() as u64;
        if read > ENTRY_BYTES_MAX {
            return Err(failed(&format!("{name} is longer than {} MiB", ENTRY_BYTES_MAX >> 20)));
        }
        if read > limit {
            let total = TOTAL_BYTES_MAX >> 20;
            return Err(failed(&format!("its entries are longer than {total} MiB together")));
        }
        total += read;
        files.insert(name, content);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// Writes an archive of these entries.
    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn read_bytes(bytes: &[u8]) -> Result<Files, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("export.zip");
        std::fs::write(&file, bytes).unwrap();
        read(file.to_str().unwrap()).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn files_are_read_by_name() {
        let files = read_bytes(&archive(&[("a/b.json", b"{}"), ("c", b"")])).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a/b.json", "c"]);
        assert_eq!(files["a/b.json"], b"{}");
    }

    #[test]
    fn what_is_no_archive_or_damaged_is_refused() {
        let whole = archive(&[("users.json", &b"{\"a\": 1}".repeat(100))]);
        let mut flipped = whole.clone();
        flipped[45] ^= 0x10;
        for wrong in [&b""[..], b"PK", b"not a zip at all", &whole[..whole.len() / 2], &flipped] {
            assert!(read_bytes(wrong).unwrap_err().contains("could not be read"));
        }
    }

    /// A bomb: a megabyte of compressed zeros for each gigabyte that a reader without a limit would store.
    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; (ENTRY_BYTES_MAX + 1).try_into().unwrap()];
        assert!(read_bytes(&archive(&[("users.json", &zeros)])).unwrap_err().contains("longer than 64 MiB"));
        let part = &zeros[..50 << 20];
        let error = read_bytes(&archive(&[("a", part), ("b", part), ("c", part)])).unwrap_err();
        assert!(error.contains("128 MiB together"), "{error}");
    }

    #[test]
    fn too_long_a_name_is_refused() {
        assert!(read_bytes(&archive(&[(&"x".repeat(300), b"")])).unwrap_err().contains("256 bytes"));
    }
}
