//! All versions of a bucket at the source, key by key. Pages are fetched ahead, and memory is bounded.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};
use std::vec::IntoIter;

use cairn_sync::Mutex;

use super::buckets::SourceBucket;
use crate::commands::remote::{Entry, Page, Place, Remote, Trouble};

/// Pages of a range that are fetched before they are needed.
const PAGES_AHEAD: usize = 4;
/// Ranges that are fetched at a time.
const RANGES_AT_ONCE: usize = 4;
/// Ranges that are fetched before they are needed. Most of them are a page.
const RANGES_AHEAD: usize = 8;
/// Most versions of one key, which are in memory at the same time.
const VERSIONS_OF_KEY_MAX: usize = 1_000_000;

/// The versions of a key, newest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) key: String,
    pub(super) entries: Vec<Entry>,
}

/// The condition on which sources that can list tags and locks do so. They make the lists of MinIO three times as expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settings {
    /// In all pages.
    Always,
    /// In the first page, and then as long as pages have tags. Each version is asked for anyway, and only one with tags would
    /// need another request.
    WhileTagged,
    /// In none.
    Never,
}

/// The detail of a source's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Versions, with their tags and locks.
    Settings,
    /// Versions.
    Versions,
    /// Current objects, of a bucket that has no others.
    Current,
    /// Current objects only.
    Objects,
}

/// The keys of a bucket, in the order in which the source lists them.
pub(super) struct Groups {
    ranges: Receiver<Pages>,
    /// The pages of the present range.
    pages: Option<Pages>,
    entries: IntoIter<Entry>,
    /// The first entry of the next group.
    ahead: Option<Entry>,
    last_key: Option<String>,
    pub(super) detail: Detail,
    /// Whether all keys so far were in the order of their bytes.
    pub(super) is_ordered: bool,
}

impl Groups {
    /// Begins to list a bucket. `bounds` are keys, in order, at which the list is divided into ranges that are fetched at the
    /// same time: those of a source that lists keys in the order of their bytes.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        source: &'scope Remote,
        bucket: &SourceBucket,
        settings: Settings,
        bounds: Vec<String>,
    ) -> Self {
        let (sender, ranges) = sync_channel(RANGES_AHEAD);
        let bucket = bucket.clone();
        scope.spawn(move || fetch(source, &bucket, settings, bounds, &sender));
        Self::of(ranges)
    }

    fn of(ranges: Receiver<Pages>) -> Self {
        let entries = Vec::new().into_iter();
        let (detail, is_ordered) = (Detail::Versions, true);
        Self { ranges, pages: None, entries, ahead: None, last_key: None, detail, is_ordered }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Trouble> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some(entry));
            }
            match self.pages.as_ref().map(Receiver::recv) {
                Some(Ok(page)) => {
                    let (entries, detail) = page?;
                    self.detail = detail;
                    self.entries = entries.into_iter();
                }
                _ => match self.ranges.recv() {
                    Err(_) => return Ok(None),
                    Ok(pages) => self.pages = Some(pages),
                },
            }
        }
    }

    /// Returns the versions of the next key; `None` at the end.
    pub(super) fn next_group(&mut self) -> Result<Option<Group>, Trouble> {
        let first = match self.ahead.take() {
            Some(entry) => Some(entry),
            None => self.next_entry()?,
        };
        let Some(first) = first else { return Ok(None) };
        let key = first.key.clone();
        self.is_ordered &= self.last_key.as_ref().is_none_or(|last| last.as_bytes() < key.as_bytes());
        // Some sources begin a page with the last entry of the page before.
        let mut seen = HashSet::new();
        let mut entries = vec![first];
        while let Some(entry) = self.next_entry()? {
            if entry.key != key {
                self.ahead = Some(entry);
                break;
            }
            if seen.is_empty() {
                seen.insert(entries[0].id().to_owned());
            }
            if !seen.insert(entry.id().to_owned()) {
                continue;
            }
            if entries.len() == VERSIONS_OF_KEY_MAX {
                let what = format!(
                    "the key {} has more than {VERSIONS_OF_KEY_MAX} versions",
                    crate::terminal::plain(&key)
                );
                return Err(Trouble::Wrong(what));
            }
            entries.push(entry);
        }
        // Some sources list null versions last, wherever they belong. They are placed by their dates here, too.
        entries.sort_by_key(|entry| Reverse((entry.is_latest, entry.modified / 1000)));
        self.last_key = Some(key.clone());
        Ok(Some(Group { key, entries }))
    }
}

/// Pages of a range, as far as they have been fetched.
type Pages = Receiver<Result<(Vec<Entry>, Detail), Trouble>>;

/// A range of a list.
struct Range {
    /// The start of the range.
    place: Place,
    /// Its last key; `None` for the last range.
    until: Option<String>,
    sender: SyncSender<Result<(Vec<Entry>, Detail), Trouble>>,
}

impl Range {
    fn new(place: Place, until: Option<String>) -> (Self, Pages) {
        let (sender, pages) = sync_channel(PAGES_AHEAD);
        (Self { place, until, sender }, pages)
    }

    /// Sends a page. Returns whether others follow and somebody wants them.
    fn send(&mut self, mut page: Page, detail: Detail) -> bool {
        if let Some(until) = &self.until
            && let Some(end) = page.entries.iter().position(|entry| entry.key.as_bytes() > until.as_bytes())
        {
            page.entries.truncate(end);
            page.next = None;
        }
        let is_wanted = self.sender.send(Ok((page.entries, detail))).is_ok();
        match page.next {
            Some(next) if next == self.place => {
                let twice = Trouble::Wrong("the source returned the same page twice".to_owned());
                self.fail(twice);
                false
            }
            Some(next) => {
                self.place = next;
                is_wanted
            }
            None => false,
        }
    }

    /// Sends why there are no more pages. Nobody is left to tell if this fails.
    fn fail(&self, trouble: Trouble) {
        let _ = self.sender.send(Err(trouble));
    }

    /// Fetches all its pages.
    fn fetch(mut self, source: &Remote, bucket: &str, mut detail: Detail, settings: Settings) {
        loop {
            let page = match list(source, bucket, &self.place, detail) {
                Ok(page) => page,
                Err(trouble) => return self.fail(trouble),
            };
            let following = following(&page, detail, settings);
            if !self.send(page, detail) {
                return;
            }
            detail = following;
        }
    }
}

fn list(source: &Remote, bucket: &str, place: &Place, detail: Detail) -> Result<Page, Trouble> {
    match detail {
        Detail::Settings => source.versions(bucket, place, true),
        Detail::Versions => source.versions(bucket, place, false),
        Detail::Current | Detail::Objects => source.objects(bucket, place),
    }
}

/// Returns how the page after this one is listed.
fn following(page: &Page, detail: Detail, settings: Settings) -> Detail {
    let has_tags = |entry: &Entry| entry.settings.as_ref().is_some_and(|found| !found.tags.is_empty());
    let has_objects = page.entries.iter().any(|entry| !entry.is_marker);
    match detail {
        // The source ignores the wish.
        Detail::Settings if !page.has_settings && has_objects => Detail::Versions,
        Detail::Settings if settings == Settings::WhileTagged && !page.entries.iter().any(has_tags) => {
            Detail::Versions
        }
        detail => detail,
    }
}

/// Returns whether an entry is a current object that was never a version.
fn is_alone(entry: &Entry) -> bool {
    entry.id() == "null" && entry.is_latest && !entry.is_marker
}

/// Fetches the first page, and finds out what the source tells.
fn first(source: &Remote, bucket: &SourceBucket, settings: Settings) -> Result<(Page, Detail), Trouble> {
    let mut detail = if settings == Settings::Never { Detail::Versions } else { Detail::Settings };
    loop {
        detail = match (list(source, &bucket.name, &Place::new(), detail), detail) {
            (Err(trouble), Detail::Settings) if trouble.is_unknown_operation() => Detail::Versions,
            (Err(trouble), Detail::Versions) if trouble.is_unknown_operation() => Detail::Objects,
            // Of such buckets, all stores list objects in the simple form, and some tell more there: the right entity tags.
            (Ok(page), Detail::Settings | Detail::Versions)
                if bucket.versioning.is_none() && !page.has_settings && page.entries.iter().all(is_alone) =>
            {
                Detail::Current
            }
            (page, _) => return page.map(|page| (page, detail)),
        }
    }
}

/// Fetches all pages. Ends early if nobody wants more.
fn fetch(
    source: &Remote,
    bucket: &SourceBucket,
    settings: Settings,
    bounds: Vec<String>,
    sender: &SyncSender<Pages>,
) {
    let found = first(source, bucket, settings);
    // Only lists of versions begin behind a key.
    let bounds =
        if matches!(found, Ok((_, Detail::Current | Detail::Objects))) { Vec::new() } else { bounds };
    let mut until = bounds.into_iter();
    let mut bound = until.next();
    let (mut range, pages) = Range::new(Place::new(), bound.clone());
    if sender.send(pages).is_err() {
        return;
    }
    let (page, detail) = match found {
        Ok(found) => found,
        Err(trouble) => return range.fail(trouble),
    };
    let next = following(&page, detail, settings);
    // What the source ignores is not known of this page, either.
    let told = if next == Detail::Versions && !page.has_settings { next } else { detail };
    if range.send(page, told) {
        range.fetch(source, &bucket.name, next, settings);
    } else {
        drop(range);
    }
    let (jobs, waiting) = sync_channel::<Range>(0);
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        for _ in 0..RANGES_AT_ONCE {
            if bound.is_none() {
                break;
            }
            scope.spawn(|| {
                loop {
                    let range = waiting.lock().recv();
                    let Ok(range) = range else { return };
                    range.fetch(source, &bucket.name, next, settings);
                }
            });
        }
        // The workers end when this is dropped.
        let jobs = jobs;
        while let Some(from) = bound.take() {
            bound = until.next();
            let (range, pages) = Range::new(vec![("key-marker", from)], bound.clone());
            if sender.send(pages).is_err() || jobs.send(range).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, id: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            version_id: Some(id.to_owned()),
            is_marker: false,
            is_latest: true,
            etag: String::new(),
            size: 0,
            modified: 0,
            has_client_key: false,
            settings: None,
        }
    }

    #[test]
    fn versions_of_a_key_are_together_even_across_pages() {
        let (sender, pages) = sync_channel(9);
        // The third page repeats the last entry of the first one.
        for ids in [&["a1", "b1"][..], &[], &["b1", "b2", "b3", "c1"], &["B1"]] {
            let entries = ids.iter().map(|id| entry(&id[..1], &id[1..])).collect();
            sender.send(Ok((entries, Detail::Versions))).expect("room");
        }
        drop(sender);
        let (ranges, range) = sync_channel(1);
        ranges.send(pages).expect("room");
        drop(ranges);
        let mut groups = Groups::of(range);
        let mut found = Vec::new();
        while let Some(group) = groups.next_group().expect("pages") {
            assert_eq!(groups.is_ordered, group.key != "B");
            found.push((group.key, group.entries.len()));
        }
        let expected = [("a", 1), ("b", 3), ("c", 1), ("B", 1)].map(|(key, count)| (key.to_owned(), count));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_is_cut_at_the_end_of_its_range() {
        let page = |keys: &[&str], next: Option<&str>| Page {
            entries: keys.iter().map(|key| entry(key, "1")).collect(),
            next: next.map(|next| vec![("key-marker", next.to_owned())]),
            has_settings: false,
        };
        let keys = |pages: &Pages| pages.recv().expect("a page").expect("entries").0.len();
        let (mut range, pages) = Range::new(Place::new(), Some("c".to_owned()));
        assert!(range.send(page(&["a", "b"], Some("b")), Detail::Versions));
        assert!(!range.send(page(&["c", "c", "d"], Some("d")), Detail::Versions));
        assert_eq!([keys(&pages), keys(&pages)], [2, 2]);
        let (mut range, pages) = Range::new(vec![("key-marker", "c".to_owned())], None);
        assert!(!range.send(page(&["d"], Some("c")), Detail::Versions), "the same page again");
        assert!(keys(&pages) == 1 && pages.recv().expect("an answer").is_err());
    }
}
