//! Damaged, missing and foreign folders: nothing is hidden, and the message says what to do.

use crate::support::{Fixture, embed, new_share, share};
use cairn_sharing::Share;
use cairn_tables::StoreFailure;
use std::os::unix::fs::FileExt;

#[test]
fn a_missing_file_is_damage_and_no_new_one_is_made() {
    let fixture = Fixture::new();
    share(&fixture.open(), new_share("a"));
    std::fs::remove_file(fixture.data()).unwrap();
    let error = fixture.open_error(|_| ());
    assert!(
        error.contains("missing or empty") && error.contains("Restore the folder from a backup"),
        "{error}"
    );
    assert!(!fixture.data().exists());
}

#[test]
fn the_folder_of_another_store_is_refused() {
    let fixture = Fixture::new();
    share(&fixture.open(), new_share("a"));
    let error = fixture.open_error(|options| options.store = [8; 16]);
    assert!(error.contains("another store"), "{error}");
}

/// A byte of every record is changed in turn. The damage must be found at the start or by the read, and must not turn one link
/// into another.
#[test]
fn a_changed_byte_is_found() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (created, token) = share(&sharing, new_share("needle-of-a-share"));
    embed(&sharing, "needle-of-an-embed");
    drop(sharing);
    let intact = std::fs::read(fixture.data()).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(fixture.data()).unwrap();
    let mut found = 0;
    for needle in ["needle-of-a-share", "needle-of-an-embed", "sealed_token"] {
        for at in 0..intact.len() - needle.len() {
            if &intact[at..at + needle.len()] != needle.as_bytes() {
                continue;
            }
            file.write_at(b"N", at as u64).unwrap();
            match cairn_sharing::Links::open(fixture.options()) {
                Err(error) => found += usize::from(error.to_string().contains("cannot be opened")),
                // An old copy of the page: the record that is in force is intact.
                Ok(sharing) => assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(created.clone()))),
            }
            file.write_at(&intact[at..=at], at as u64).unwrap();
        }
    }
    assert!(found >= 3, "{found}");
    assert_eq!(fixture.open().find::<Share>(&token.hash()), Ok(Some(created)));
}

#[test]
fn a_closed_store_refuses_changes() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    sharing.close();
    let refused = futures_lite::future::block_on(sharing.create_share(new_share("a"))).unwrap_err();
    assert_eq!(refused, StoreFailure::Closing.into());
}
