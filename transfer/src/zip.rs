//! Writes ZIP archives of stored entries as a stream.
//!
//! Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", version 6.3.10; sections are named below. Nothing is
//! compressed. The size of an entry is known when it begins, its CRC-32 only when it ends, so it follows the content in a
//! data descriptor (4.3.9). Larger entries, offsets and counts than the fields of 1989 hold are in ZIP64 form (4.3.14,
//! 4.5.3). Entries have the time of their change twice: as local time of MS-DOS, for which UTC is taken, and exactly, as
//! Info-ZIP stores it (4.6, 0x5455).
//!
//! The list of all entries is at the end of an archive (4.3.12), so it is kept in memory. An archive without its end has
//! no list, and no program takes it for complete.

use cairn_model::{Timestamp, u64_of};
use crc_fast::{CrcAlgorithm, Digest};

/// Longest name of an entry, in bytes (4.4.10).
pub const NAME_BYTES_MAX: usize = 0xffff;

/// Bit 3: sizes and CRC-32 follow the content. Bit 11: the name is UTF-8 (4.4.4).
const FLAGS: u16 = (1 << 3) | (1 << 11);
/// Version 4.5, which is needed for ZIP64 (4.4.3.2).
const VERSION_ZIP64: u16 = 45;
/// Version 2.0, which is needed for folders (4.4.3.2).
const VERSION: u16 = 20;
/// Made on UNIX, so that the attributes are those of UNIX (4.4.2.2).
const MADE_BY: u16 = (3 << 8) | VERSION_ZIP64;
/// The attributes of a file: its mode in the upper half.
const FILE: u32 = 0o100_644 << 16;
/// The attributes of a folder, with the bit of MS-DOS.
const FOLDER: u32 = (0o040_755 << 16) | 0x10;
/// A value of 32 bits that stands in the ZIP64 field. Greater values do too.
const IN_ZIP64: u32 = u32::MAX;
const ENTRIES_IN_ZIP64: u16 = u16::MAX;

const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_ZIP64: u32 = 0x0606_4b50;
const LOCATOR_ZIP64: u32 = 0x0706_4b50;
const FIELD_ZIP64: u16 = 0x0001;
const FIELD_TIME: u16 = 0x5455;

/// Length of the header of an entry in the list, without name and fields.
const CENTRAL_BYTES: usize = 46;
/// Longest ZIP64 field of an entry in the list: two sizes and an offset.
const FIELD_ZIP64_BYTES: usize = 4 + 3 * 8;
/// Length of the field with the time.
const FIELD_TIME_BYTES: usize = 4 + 5;

/// An archive that is being written. Headers are appended to buffers of the caller, which sends them and the content.
#[derive(Default)]
pub struct ZipWriter {
    /// Bytes of the archive so far.
    offset: u64,
    entries: u64,
    /// The list so far, as it will be at the end.
    directory: Vec<u8>,
    open: Option<OpenEntry>,
}

/// The facts about an entry that are known before its content.
#[derive(Clone, Copy, Debug)]
pub struct ZipEntry<'a> {
    /// The name, with slashes; one at the end is a folder. At most [`NAME_BYTES_MAX`] bytes.
    pub name: &'a str,
    /// Bytes of the content; 0 for a folder.
    pub size: u64,
    /// The time when it was changed.
    pub modified: Timestamp,
}

/// The entry whose content is being written.
struct OpenEntry {
    /// The offset of the CRC-32 in the list.
    checksum_at: usize,
    crc: Digest,
    left: u64,
    size: u64,
}

impl ZipWriter {
    /// Returns an upper bound of the bytes that an entry takes in the list.
    #[must_use]
    pub const fn directory_bytes(name: &str) -> usize {
        CENTRAL_BYTES + name.len() + FIELD_ZIP64_BYTES + FIELD_TIME_BYTES
    }

    /// Begins an entry: appends its header to `out`. The entry before must have ended.
    pub fn begin(&mut self, out: &mut Vec<u8>, entry: ZipEntry<'_>) {
        assert!(self.open.is_none(), "an entry begins after the end of the one before");
        let (name, offset, before) = (entry.name.as_bytes(), self.offset, out.len());
        let name_bytes = u16::try_from(name.len()).expect("the name was checked");
        let (size, is_large) = short(entry.size);
        let (_, is_far) = short(offset);
        let version = if is_large || is_far { VERSION_ZIP64 } else { VERSION };
        let (time, date) = dos_time(entry.modified);
        let exact = time_field(entry.modified);

        let mut sizes = Vec::new();
        if is_large {
            put16(&mut sizes, FIELD_ZIP64);
            put16(&mut sizes, 16);
            put64(&mut sizes, entry.size);
            put64(&mut sizes, entry.size);
        }
        // The local header (4.3.7).
        put32(out, LOCAL);
        for value in [version, FLAGS, 0, time, date] {
            put16(out, value);
        }
        for value in [0, size, size] {
            put32(out, value);
        }
        put16(out, name_bytes);
        put16(out, field_bytes(&[&sizes, &exact]));
        for bytes in [name, &sizes, &exact] {
            out.extend_from_slice(bytes);
        }
        self.offset += u64_of(out.len() - before);
        let checksum_at = self.list(entry, offset, (time, date), &exact);
        let crc = Digest::new(CrcAlgorithm::Crc32IsoHdlc);
        self.open = Some(OpenEntry { checksum_at, crc, left: entry.size, size: entry.size });
    }

    /// Adds an entry to the list (4.3.12). Returns where its CRC-32 is.
    fn list(&mut self, entry: ZipEntry<'_>, offset: u64, (time, date): (u16, u16), exact: &[u8]) -> usize {
        let ((size, is_large), (short_offset, is_far)) = (short(entry.size), short(offset));
        let mut large = Vec::new();
        if is_large || is_far {
            put16(&mut large, FIELD_ZIP64);
            put16(&mut large, if is_large { 16 } else { 0 } + if is_far { 8 } else { 0 });
            if is_large {
                put64(&mut large, entry.size);
                put64(&mut large, entry.size);
            }
            if is_far {
                put64(&mut large, offset);
            }
        }
        let out = &mut self.directory;
        put32(out, CENTRAL);
        let version = if is_large || is_far { VERSION_ZIP64 } else { VERSION };
        for value in [MADE_BY, version, FLAGS, 0, time, date] {
            put16(out, value);
        }
        let checksum_at = out.len();
        for value in [0, size, size] {
            put32(out, value);
        }
        put16(out, u16::try_from(entry.name.len()).expect("the name was checked"));
        put16(out, field_bytes(&[&large, exact]));
        // No comment, the first disk, no text.
        for _ in 0..3 {
            put16(out, 0);
        }
        put32(out, if entry.name.ends_with('/') { FOLDER } else { FILE });
        put32(out, short_offset);
        for bytes in [entry.name.as_bytes(), &large, exact] {
            out.extend_from_slice(bytes);
        }
        self.entries += 1;
        checksum_at
    }

    /// Counts content of the open entry, which the caller sends.
    pub fn content(&mut self, bytes: &[u8]) {
        let open = self.open.as_mut().expect("content belongs to an entry");
        let length = u64_of(bytes.len());
        open.left = open.left.checked_sub(length).expect("an entry has as much content as it began with");
        open.crc.update(bytes);
        self.offset += length;
    }

    /// Ends the open entry: appends its data descriptor to `out`.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let open = self.open.take().expect("an entry ends after it began");
        assert_eq!(open.left, 0, "an entry has as much content as it began with");
        let crc = u32::try_from(open.crc.finalize()).expect("a CRC-32 has 32 bits");
        self.directory[open.checksum_at..][..4].copy_from_slice(&crc.to_le_bytes());
        let before = out.len();
        put32(out, DESCRIPTOR);
        put32(out, crc);
        // The sizes have the width of the local header's (4.3.9.2).
        match short(open.size) {
            (_, true) => {
                put64(out, open.size);
                put64(out, open.size);
            }
            (size, false) => {
                put32(out, size);
                put32(out, size);
            }
        }
        self.offset += u64_of(out.len() - before);
    }

    /// Returns the bytes of the list so far.
    #[must_use]
    pub const fn directory_len(&self) -> usize {
        self.directory.len()
    }

    /// Returns how many entries have begun.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the end of the archive: the list, and where it is.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        assert!(self.open.is_none(), "an archive ends after its last entry");
        let Self { offset, entries, directory: mut out, .. } = self;
        let bytes = u64_of(out.len());
        let ((short_bytes, is_large), (short_offset, is_far)) = (short(bytes), short(offset));
        let count = u16::try_from(entries).unwrap_or(ENTRIES_IN_ZIP64);
        if is_large || is_far || count == ENTRIES_IN_ZIP64 {
            // The end in ZIP64 form, without its first 12 bytes (4.3.14.1), and where it is (4.3.15).
            put32(&mut out, END_ZIP64);
            put64(&mut out, 44);
            put16(&mut out, MADE_BY);
            put16(&mut out, VERSION_ZIP64);
            put32(&mut out, 0);
            put32(&mut out, 0);
            for value in [entries, entries, bytes, offset] {
                put64(&mut out, value);
            }
            put32(&mut out, LOCATOR_ZIP64);
            put32(&mut out, 0);
            put64(&mut out, offset + bytes);
            put32(&mut out, 1);
        }
        // The end of 1989 (4.3.16).
        put32(&mut out, END);
        for value in [0, 0, count, count] {
            put16(&mut out, value);
        }
        put32(&mut out, short_bytes);
        put32(&mut out, short_offset);
        put16(&mut out, 0);
        out
    }
}

/// Returns the value of a field of 32 bits, and whether the true value is in the ZIP64 field.
fn short(value: u64) -> (u32, bool) {
    let short = u32::try_from(value).unwrap_or(IN_ZIP64);
    (short, short == IN_ZIP64)
}

fn field_bytes(fields: &[&[u8]]) -> u16 {
    let bytes: usize = fields.iter().map(|field| field.len()).sum();
    u16::try_from(bytes).expect("two fields are short")
}

/// Returns the field with the exact time, which holds times until 2038.
fn time_field(modified: Timestamp) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(seconds) = i32::try_from(modified.seconds()) {
        put16(&mut out, FIELD_TIME);
        put16(&mut out, 5);
        // Bit 0: the time of the last change, and no other.
        out.push(1);
        out.extend_from_slice(&seconds.to_le_bytes());
    }
    out
}

/// Returns time and date of MS-DOS (4.4.6): two-second steps from 1980 to 2107. Others become the nearest one.
fn dos_time(modified: Timestamp) -> (u16, u16) {
    const FIRST: &str = "1980-01-01T00:00:00";
    const LAST: &str = "2107-12-31T23:59:58";
    let text = cairn_http1::iso8601_millis(modified.0);
    let text = match text.get(..FIRST.len()) {
        Some(text) if text < FIRST => FIRST,
        Some(text) if text <= LAST && text.is_ascii() => text,
        _ => LAST,
    };
    let number =
        |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let [year, month, day, hour, minute, second]: [u16; 6] =
        [number(0, 4), number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19)];
    ((hour << 11) | (minute << 5) | (second / 2), ((year - 1980) << 9) | (month << 5) | day)
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests;
