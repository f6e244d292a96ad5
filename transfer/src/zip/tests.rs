//! Tests of archives, with a reader that trusts only the list.

use super::*;
use proptest::prelude::*;

/// An archive whose content was not kept: its length, and its other bytes with their places.
#[derive(Default)]
struct Sparse {
    length: u64,
    pieces: Vec<(u64, Vec<u8>)>,
}

/// An entry of the list.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    crc: u32,
    size: u64,
    offset: u64,
    seconds: Option<i32>,
}

impl Sparse {
    fn add(&mut self, bytes: Vec<u8>) {
        let at = self.length;
        self.length += u64_of(bytes.len());
        self.pieces.push((at, bytes));
    }

    fn at(&self, offset: u64) -> &[u8] {
        let found = self.pieces.iter().find_map(|(at, bytes)| {
            let within = usize::try_from(offset.checked_sub(*at)?).ok()?;
            bytes.get(within..).filter(|rest| !rest.is_empty())
        });
        found.expect("bytes that were kept")
    }
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Writes an archive. The content of an entry is a byte that repeats.
fn written(entries: &[(String, u8, u64)]) -> Sparse {
    let (mut archive, mut zip) = (Sparse::default(), ZipWriter::default());
    let block = 1_usize << 24;
    for (name, byte, size) in entries {
        let mut head = Vec::new();
        zip.begin(&mut head, ZipEntry { name, size: *size, modified: Timestamp(1_700_000_001_000) });
        archive.add(head);
        let bytes = vec![*byte; usize::try_from(*size).unwrap_or(block).min(block)];
        let mut left = *size;
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(block).min(bytes.len());
            zip.content(&bytes[..now]);
            left -= u64_of(now);
        }
        archive.length += size;
        let mut tail = Vec::new();
        zip.end(&mut tail);
        archive.add(tail);
    }
    assert_eq!(zip.entries(), u64_of(entries.len()));
    archive.add(zip.finish());
    archive
}

/// Reads the list from the end, as programs do.
fn listed(archive: &Sparse) -> Vec<Listed> {
    let (_, last) = archive.pieces.last().expect("an end");
    let end = &last[last.len() - 22..];
    assert_eq!(get32(end, 0), END);
    let (mut count, mut bytes, mut offset) =
        (u64::from(get16(end, 10)), u64::from(get32(end, 12)), u64::from(get32(end, 16)));
    if count == 0xffff || bytes == 0xffff_ffff || offset == 0xffff_ffff {
        let locator = &last[last.len() - 42..];
        assert_eq!(get32(locator, 0), LOCATOR_ZIP64);
        let large = archive.at(get64(locator, 8));
        assert_eq!((get32(large, 0), get64(large, 4)), (END_ZIP64, 44));
        (count, bytes, offset) = (get64(large, 32), get64(large, 40), get64(large, 48));
    }
    let mut list = &archive.at(offset)[..usize::try_from(bytes).expect("short")];
    let mut found = Vec::new();
    for _ in 0..count {
        let (one, rest) = entry_of(list);
        found.push(one);
        list = rest;
    }
    assert!(list.is_empty(), "the list has as many entries as its end says");
    found
}

fn entry_of(list: &[u8]) -> (Listed, &[u8]) {
    assert_eq!((get32(list, 0), get16(list, 8)), (CENTRAL, FLAGS));
    let (name, fields) = (usize::from(get16(list, 28)), usize::from(get16(list, 30)));
    let mut one = Listed {
        name: String::from_utf8(list[46..46 + name].to_vec()).expect("UTF-8"),
        crc: get32(list, 16),
        size: u64::from(get32(list, 24)),
        offset: u64::from(get32(list, 42)),
        seconds: None,
    };
    assert_eq!(get32(list, 20), get32(list, 24), "stored");
    let mut rest = &list[46 + name..][..fields];
    while !rest.is_empty() {
        let (kind, length) = (get16(rest, 0), usize::from(get16(rest, 2)));
        let mut value = &rest[4..4 + length];
        let mut next = || {
            let number = get64(value, 0);
            value = &value[8..];
            number
        };
        match kind {
            FIELD_ZIP64 => {
                if one.size == 0xffff_ffff {
                    one.size = next();
                    assert_eq!(next(), one.size);
                }
                if one.offset == 0xffff_ffff {
                    one.offset = next();
                }
                assert!(value.is_empty());
            }
            FIELD_TIME => one.seconds = Some(get32(value, 1).cast_signed()),
            other => panic!("the field {other:#x}"),
        }
        rest = &rest[4 + length..];
    }
    (one, &list[46 + name + fields..])
}

/// Checks an entry in its place: its header, and what follows its content.
fn check_place(archive: &Sparse, one: &Listed) {
    let local = archive.at(one.offset);
    assert_eq!((get32(local, 0), get16(local, 6), get32(local, 14)), (LOCAL, FLAGS, 0));
    let (name, fields) = (usize::from(get16(local, 26)), usize::from(get16(local, 28)));
    assert_eq!(&local[30..30 + name], one.name.as_bytes());
    let (size, width) = match get32(local, 22) {
        0xffff_ffff => (get64(local, 30 + name + 4), 8),
        size => (u64::from(size), 4),
    };
    assert_eq!(size, one.size);
    let after = archive.at(one.offset + u64_of(30 + name + fields) + size);
    assert_eq!((get32(after, 0), get32(after, 4)), (DESCRIPTOR, one.crc));
    let repeated = if width == 8 { get64(after, 8) } else { u64::from(get32(after, 8)) };
    assert_eq!(repeated, size);
}

fn crc_of(byte: u8, size: u64) -> u32 {
    let mut crc = Digest::new(CrcAlgorithm::Crc32IsoHdlc);
    (0..size).for_each(|_| crc.update(&[byte]));
    u32::try_from(crc.finalize()).expect("32 bits")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_entry_is_found_from_the_end(entries in prop::collection::vec(("[a-zäß/]{1,12}", any::<u8>(), 0..200_u64), 0..20)) {
        let archive = written(&entries);
        let found = listed(&archive);
        prop_assert_eq!(found.len(), entries.len());
        for (one, (name, byte, size)) in found.iter().zip(&entries) {
            prop_assert_eq!((&one.name, one.size, one.crc), (name, *size, crc_of(*byte, *size)));
            prop_assert_eq!(one.seconds, Some(1_700_000_001));
            check_place(&archive, one);
        }
    }
}

#[test]
fn more_entries_than_sixteen_bits_count_are_all_listed() {
    for count in [65_534_usize, 65_535, 65_536, 70_000] {
        let entries: Vec<_> = (0..count).map(|number| (format!("{number}"), 0, 0)).collect();
        let archive = written(&entries);
        let found = listed(&archive);
        assert_eq!(found.len(), count);
        check_place(&archive, found.last().expect("entries"));
        let (_, end) = archive.pieces.last().expect("an end");
        let is_large = get32(end, end.len() - 42) == LOCATOR_ZIP64;
        assert_eq!(is_large, count >= 65_535, "{count}");
    }
}

/// Sizes and offsets on both sides of 4 GiB: the greatest value of 32 bits means that the true one is elsewhere.
#[test]
fn entries_and_archives_of_more_than_four_gibibytes_are_in_the_large_form() {
    for size in [0xffff_fffe_u64, 0xffff_ffff, 0x1_0000_0000] {
        let entries = [("large".to_owned(), 7, size), ("small".to_owned(), 8, 3)];
        let archive = written(&entries);
        let found = listed(&archive);
        assert_eq!((found[0].size, found[1].size), (size, 3));
        assert!(found[1].offset > size);
        for one in &found {
            check_place(&archive, one);
        }
    }
}

#[test]
fn times_are_those_of_the_nearest_day_that_fits() {
    let day = |millis| dos_time(Timestamp(millis));
    // 2023-11-14T22:13:21Z
    assert_eq!(day(1_700_000_001_000), ((22 << 11) | (13 << 5) | 10, (43 << 9) | (11 << 5) | 14));
    assert_eq!(day(0), (0, (1 << 5) | 1));
    assert_eq!(day(u64::MAX), ((23 << 11) | (59 << 5) | 29, (127 << 9) | (12 << 5) | 31));
    assert!(time_field(Timestamp(u64::MAX)).is_empty());
}
