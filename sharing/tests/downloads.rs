//! Counted downloads: once an hour per visitor, never more than allowed, durable where a limit depends on it.

use crate::support::{Fixture, embed, new_share, share, visitor};
use cairn_sharing::{Download, Embed, LinkId, LinkStatus, Links, NewShare, Share, ShareChange, Visitor};
use futures_lite::future::block_on;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const EXHAUSTED: Download = Download::Refused(LinkStatus::Exhausted);

fn limited(sharing: &Links, maximum: u64) -> Share {
    share(sharing, NewShare { maximum_downloads: Some(maximum), ..new_share("a") }).0
}

fn download(sharing: &Links, id: LinkId, visitor: Visitor, continues: bool) -> Download {
    let share = sharing.get::<Share>(id).unwrap().unwrap();
    block_on(sharing.begin_share_download(&share, visitor, continues)).unwrap()
}

fn count(sharing: &Links, id: LinkId) -> u64 {
    sharing.get::<Share>(id).unwrap().unwrap().link.access_count
}

#[test]
fn requests_of_a_visitor_are_one_download() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = share(&sharing, new_share("a")).0.link.id;
    for _ in 0..3 {
        assert_eq!(download(&sharing, id, visitor(1), false), Download::Allowed);
    }
    assert_eq!(count(&sharing, id), 1);
    assert_eq!(download(&sharing, id, visitor(2), true), Download::Allowed);
    let with_unlock = Visitor::new([192, 0, 2, 1].into(), Some([1; 16]));
    assert_eq!(download(&sharing, id, with_unlock, false), Download::Allowed);
    assert_eq!((count(&sharing, id), sharing.metrics().downloads), (3, [3, 0]));
    let last = sharing.get::<Share>(id).unwrap().unwrap().link.last_accessed_at;
    assert_eq!(last, Some(sharing.now()));
    let (created, _) = embed(&sharing, "a");
    sharing.count_embed_download(&created, visitor(1));
    sharing.count_embed_download(&created, visitor(1));
    assert_eq!(sharing.get::<Embed>(created.link.id).unwrap().unwrap().link.access_count, 1);
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!(count(&sharing, id), 3, "the end of the service writes them");
    assert_eq!(block_on(sharing.inspect()).unwrap().1, []);
}

#[test]
fn counts_are_written_every_second() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = share(&sharing, new_share("a")).0.link.id;
    download(&sharing, id, visitor(1), false);
    // A copy of the data file is what a crash would leave.
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let copy = Fixture::new();
        std::fs::copy(fixture.data(), copy.data()).unwrap();
        std::fs::remove_file(copy.folder.path().join("unmade")).unwrap();
        if count(&copy.open(), id) == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "the count was never written");
        #[expect(clippy::disallowed_methods, reason = "the test waits for another thread")]
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(count(&sharing, id), 1);
}

#[test]
fn an_exhausted_share_refuses_all_but_the_rest_of_a_download() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = limited(&sharing, 2).link.id;
    assert_eq!(download(&sharing, id, visitor(1), false), Download::Allowed);
    assert_eq!(download(&sharing, id, visitor(1), false), Download::Allowed, "the same download");
    assert_eq!(download(&sharing, id, visitor(2), false), Download::Allowed);
    assert_eq!(download(&sharing, id, visitor(3), false), EXHAUSTED);
    assert_eq!(
        download(&sharing, id, visitor(3), true),
        EXHAUSTED,
        "this visitor has no download to continue"
    );
    assert_eq!(download(&sharing, id, visitor(2), false), EXHAUSTED, "it would be a new one");
    assert_eq!(download(&sharing, id, visitor(2), true), Download::Allowed);
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!((count(&sharing, id), download(&sharing, id, visitor(2), false)), (2, EXHAUSTED));
    let more = ShareChange { maximum_downloads: Some(Some(3)), ..ShareChange::default() };
    block_on(sharing.update_share(id, more)).unwrap();
    assert_eq!(download(&sharing, id, visitor(3), false), Download::Allowed);
    assert_eq!(download(&sharing, id, visitor(4), false), EXHAUSTED);
}

#[test]
fn a_revoked_share_ends_downloads_that_were_counted() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = limited(&sharing, 2).link.id;
    let before = sharing.get::<Share>(id).unwrap().unwrap();
    assert_eq!(download(&sharing, id, visitor(1), false), Download::Allowed);
    block_on(sharing.revoke::<Share>(id)).unwrap();
    let revoked = Download::Refused(LinkStatus::Revoked);
    assert_eq!(download(&sharing, id, visitor(1), true), revoked);
    let decided = block_on(sharing.begin_share_download(&before, visitor(2), false)).unwrap();
    assert_eq!(decided, revoked, "the writer decides, not the record that was read before");
}

/// A count must be on disk before the first byte is sent: a copy of the data file is what a crash would leave.
#[test]
fn the_count_of_a_limited_share_is_durable() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = limited(&sharing, 100).link.id;
    for number in 0..20 {
        assert_eq!(download(&sharing, id, visitor(number), false), Download::Allowed);
        let copy = Fixture::new();
        std::fs::copy(fixture.data(), copy.data()).unwrap();
        std::fs::remove_file(copy.folder.path().join("unmade")).unwrap();
        assert_eq!(count(&copy.open(), id), u64::from(number) + 1);
    }
}

#[test]
fn simultaneous_visitors_get_no_more_downloads_than_allowed() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let id = limited(&sharing, 10).link.id;
    let visits: Vec<_> = (0..4u8)
        .map(|thread| {
            let sharing = Arc::clone(&sharing);
            thread::spawn(move || {
                let own = (0..20).map(|number| visitor(thread * 20 + number));
                own.filter(|visitor| download(&sharing, id, *visitor, false) == Download::Allowed).count()
            })
        })
        .collect();
    let allowed: usize = visits.into_iter().map(|visits| visits.join().unwrap()).sum();
    assert_eq!((allowed, count(&sharing, id)), (10, 10));
}
