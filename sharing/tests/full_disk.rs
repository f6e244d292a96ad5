//! Links on a full disk: changes are refused, visitors are served, and it recovers by itself.

use crate::support::{Fixture, new_share, share, visitor};
use cairn_sharing::{Download, LinkError, NewShare, Share};
use cairn_tables::StoreFailure;
use cairn_tables::testing::{fill_disk, limit_files, with_limited_files};
use futures_lite::future::block_on;
use std::path::Path;

/// Shares after which the disk must have been full.
const SHARES_MAX: usize = 100_000;

/// Removes the unused pages at the end of the data file. Returns its new size.
fn cut_headroom(data: &Path) -> u64 {
    let content = std::fs::read(data).unwrap();
    let end = content.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let used = (end + 1).next_multiple_of(4096);
    std::fs::OpenOptions::new().write(true).open(data).unwrap().set_len(used).unwrap();
    used
}

#[test]
fn a_full_disk_refuses_changes_and_loses_none() {
    let name = "full_disk::a_full_disk_refuses_changes_and_loses_none";
    with_limited_files(name, refuse_changes_and_lose_none);
}

fn refuse_changes_and_lose_none() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (limited, token) = share(&sharing, NewShare { maximum_downloads: Some(5), ..new_share("limited") });
    let (open, _) = share(&sharing, new_share("open"));
    fill_disk(fixture.folder.path());
    let mut created = 2;
    let refused = loop {
        let mut new = new_share(&format!("{created}{}", "k".repeat(1000)));
        new.link.created_by = "c".repeat(1000);
        match block_on(sharing.create_share(new)) {
            Ok(_) => created += 1,
            Err(error) => break error,
        }
        assert!(created < SHARES_MAX, "the limit was never reached");
    };
    assert_eq!(refused, LinkError::Store(StoreFailure::Full));
    assert!(created > 100, "the headroom is used first: {created}");
    assert_eq!(sharing.metrics().links[0], created as u64);
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(limited.clone())), "visitors are served");
    let begin = |share, number| block_on(sharing.begin_share_download(share, visitor(number), false));
    assert_eq!(begin(&open, 1), Ok(Download::Allowed));
    assert_eq!(begin(&limited, 1), Ok(Download::Allowed), "new links leave room for counts");
    let (doomed, _) = block_on(sharing.revoke::<Share>(limited.link.id)).unwrap();
    assert!(doomed.link.revoked_at.is_some(), "new links leave room for revocations");
    assert_eq!(sharing.health(), Ok(()), "a full disk is not a failure");

    limit_files(None);
    let (last, _) = share(&sharing, NewShare { maximum_downloads: Some(5), ..new_share("last") });
    drop(sharing);
    // Without any written space, nothing can be counted or changed.
    let used = cut_headroom(&fixture.data());
    limit_files(Some(used));
    let sharing = fixture.open();
    let begin = |share, number| block_on(sharing.begin_share_download(share, visitor(number), false));
    assert_eq!(
        begin(&last, 1),
        Err(LinkError::Store(StoreFailure::Full)),
        "it cannot be counted, so it is not sent"
    );
    assert_eq!(sharing.get::<Share>(last.link.id).unwrap().unwrap().link.access_count, 0);
    assert_eq!(begin(&open, 2), Ok(Download::Allowed));
    limit_files(None);
    assert_eq!(begin(&last, 1), Ok(Download::Allowed));
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!(sharing.metrics().links[0], created as u64 + 1);
    assert_eq!(sharing.get::<Share>(open.link.id).unwrap().unwrap().link.access_count, 2);
    assert_eq!(block_on(sharing.inspect()).unwrap().1, []);
}
