//! Tests of digests: pieces and parts of any length, and every checksum.

use super::*;
use cairn_api::{ObjectEntry, ObjectPart, ObjectRecord};

/// Returns a version with parts of these lengths and a declared checksum.
fn version(etag: &str, parts: &[u64], checksum: Option<(&str, &str)>) -> Version {
    let object = ObjectEntry {
        key: "k".to_owned().into(),
        size: 0,
        etag: etag.to_owned().into(),
        last_modified: "2026-01-01T00:00:00.000Z".to_owned().into(),
        content_type: String::new(),
        version_id: None,
        retention: None,
        legal_hold: false,
    };
    let part = |(number, size): (usize, &u64)| ObjectPart {
        part_number: u32::try_from(number).expect("few parts") + 1,
        size: *size,
    };
    let record = ObjectRecord {
        object,
        metadata: BTreeMap::new(),
        headers: BTreeMap::new(),
        checksums: checksum.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        tags: Vec::new(),
        parts: parts.iter().enumerate().map(part).collect(),
        encrypted: false,
    };
    Version { key: "k".to_owned(), id: None, record, parts: parts.iter().map(|size| (1, *size)).collect() }
}

fn digests(content: &[u8], version: &Version, piece: usize) -> Digests {
    let mut digester = Digester::new(version);
    content.chunks(piece).for_each(|bytes| digester.update(bytes));
    digester.finish()
}

#[test]
fn tags_of_parts_do_not_depend_on_the_pieces_that_are_read() {
    // The MD5 of "a", of "b", and of both digests (as in the import).
    let tag = "96e024ba2074fe77e8e965ba43a704be-2";
    for piece in 1..=3 {
        let version = version(tag, &[1, 1], None);
        assert_eq!(digests(b"ab", &version, piece).check(&version), Ok(Proof::Etag));
        assert_eq!(digests(b"ac", &version, piece).check(&version), Ok(Proof::Nothing));
    }
    // One part without content is an upload, too.
    let empty = version("59adb24ef3cdbe0297f05b395827453f-1", &[0], None);
    assert_eq!(digests(b"", &empty, 1).check(&empty), Ok(Proof::Etag));
}

#[test]
fn whole_objects_are_compared_with_their_tag_or_a_checksum() {
    let plain = version("900150983cd24fb0d6963f7d28e17f72", &[], None);
    let found = digests(b"abc", &plain, 2);
    assert_eq!(found.check(&plain), Ok(Proof::Etag));
    assert_eq!(found.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (name, value) in [
        ("crc32", "NSRBwg=="),
        ("crc32c", "Nks/tw=="),
        ("sha1", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="),
        ("sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
    ] {
        let opaque = version("00000000000000000000000000000000-1", &[], Some((name, value)));
        assert_eq!(digests(b"abc", &opaque, 1).check(&opaque), Ok(Proof::Checksum), "{name}");
        assert!(digests(b"abd", &opaque, 1).check(&opaque).is_err(), "{name}");
    }
    // A checksum of checksums, and one that is not known, say nothing of the whole.
    for (name, value) in [("crc32", "NSRBwg==-2"), ("xxhash3", "AAAAAAAAAAA=")] {
        let opaque = version("00000000000000000000000000000000-1", &[], Some((name, value)));
        assert_eq!(digests(b"abc", &opaque, 3).check(&opaque), Ok(Proof::Nothing), "{name}");
    }
}
