//! Links on a full disk: changes are refused, visitors are served, and it recovers by itself.
//!
//! The process's limit on file sizes simulates the full disk; the store sees the same errors. The limit raises a signal that
//! ends a process unless it is ignored, and it applies to the whole process. The test therefore runs itself again in a
//! process of its own, started by a shell that ignores the signal.

use crate::support::{Fixture, new_share, share, visitor};
use cairn_sharing::{Download, NewShare, SharingError};
use futures_lite::future::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::process::Command;

/// Set in the process that runs the test.
const INNER: &str = "CAIRN_TEST_SIGNAL_IGNORED";
/// Shares after which the disk must have been full.
const SHARES_MAX: usize = 100_000;

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

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
    if std::env::var_os(INNER).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "full_disk::a_full_disk_refuses_changes_and_loses_none";
        let done = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture",
                this.to_str().unwrap(),
                name,
            ])
            .env(INNER, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (limited, token) = share(&sharing, NewShare { maximum_downloads: Some(5), ..new_share("limited") });
    let (open, _) = share(&sharing, new_share("open"));
    limit_files(Some(std::fs::metadata(fixture.data()).unwrap().len()));
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
    assert_eq!(refused, SharingError::Full);
    assert!(created > 100, "the headroom is used first: {created}");
    assert_eq!(sharing.metrics().links[0], created as u64);
    assert_eq!(sharing.find_share(&token.hash()), Ok(Some(limited.clone())), "visitors are served");
    let begin = |share, number| block_on(sharing.begin_share_download(share, visitor(number), false));
    assert_eq!(begin(&open, 1), Ok(Download::Allowed));
    assert_eq!(begin(&limited, 1), Ok(Download::Allowed), "new links leave room for counts");
    let (doomed, _) = block_on(sharing.revoke_share(limited.link.id)).unwrap();
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
    assert_eq!(begin(&last, 1), Err(SharingError::Full), "it cannot be counted, so it is not sent");
    assert_eq!(sharing.share(last.link.id).unwrap().unwrap().link.access_count, 0);
    assert_eq!(begin(&open, 2), Ok(Download::Allowed));
    limit_files(None);
    assert_eq!(begin(&last, 1), Ok(Download::Allowed));
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!(sharing.metrics().links[0], created as u64 + 1);
    assert_eq!(sharing.share(open.link.id).unwrap().unwrap().link.access_count, 2);
    assert_eq!(block_on(sharing.inspect()).unwrap().1, []);
}
