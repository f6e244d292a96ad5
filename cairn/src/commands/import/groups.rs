//! All versions of a bucket at the source, key by key. Pages are fetched ahead, and memory is bounded.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;
use std::vec::IntoIter;

use crate::commands::remote::{Entry, Page, Place, Remote, Trouble};

/// Pages that are fetched before they are needed.
const PAGES_AHEAD: usize = 4;
/// Most versions of one key, which are in memory at the same time.
const VERSIONS_OF_KEY_MAX: usize = 1_000_000;

/// The versions of a key, newest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) key: String,
    pub(super) entries: Vec<Entry>,
}

/// When tags and locks are listed, by sources that can. They make the lists of MinIO three times as expensive.
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

/// What a source tells in its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Versions, with their tags and locks.
    Settings,
    /// Versions.
    Versions,
    /// Current objects only.
    Objects,
}

/// The keys of a bucket, in the order in which the source lists them.
pub(super) struct Groups {
    pages: Receiver<Result<(Page, Detail), Trouble>>,
    entries: IntoIter<Entry>,
    /// The first entry of the next group.
    ahead: Option<Entry>,
    last_key: Option<String>,
    pub(super) detail: Detail,
    /// Whether all keys so far were in the order of their bytes.
    pub(super) is_ordered: bool,
}

impl Groups {
    /// Begins to list a bucket.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        source: &'scope Remote,
        bucket: &str,
        settings: Settings,
    ) -> Self {
        let (sender, pages) = sync_channel(PAGES_AHEAD);
        let bucket = bucket.to_owned();
        scope.spawn(move || fetch(source, &bucket, settings, &sender));
        let entries = Vec::new().into_iter();
        Self { pages, entries, ahead: None, last_key: None, detail: Detail::Versions, is_ordered: true }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Trouble> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some(entry));
            }
            match self.pages.recv() {
                Err(_) => return Ok(None),
                Ok(page) => {
                    let (page, detail) = page?;
                    self.detail = detail;
                    self.entries = page.entries.into_iter();
                }
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
        let mut entries = vec![first];
        while let Some(entry) = self.next_entry()? {
            if entry.key != key {
                self.ahead = Some(entry);
                break;
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
        self.last_key = Some(key.clone());
        Ok(Some(Group { key, entries }))
    }
}

/// Fetches all pages. Ends early if nobody wants more.
fn fetch(
    source: &Remote,
    bucket: &str,
    settings: Settings,
    sender: &SyncSender<Result<(Page, Detail), Trouble>>,
) {
    let mut detail = if settings == Settings::Never { Detail::Versions } else { Detail::Settings };
    let mut place = Place::new();
    let mut is_first = true;
    loop {
        let page = match detail {
            Detail::Settings => source.versions(bucket, &place, true),
            Detail::Versions => source.versions(bucket, &place, false),
            Detail::Objects => source.objects(bucket, &place),
        };
        let mut page = match (page, detail) {
            (Err(trouble), Detail::Settings) if is_first && trouble.is_unknown_operation() => {
                detail = Detail::Versions;
                continue;
            }
            (Err(trouble), Detail::Versions) if is_first && trouble.is_unknown_operation() => {
                detail = Detail::Objects;
                continue;
            }
            (Err(trouble), _) => {
                // Nobody is left to tell if this fails.
                let _ = sender.send(Err(trouble));
                return;
            }
            (Ok(page), _) => page,
        };
        if detail == Detail::Settings
            && !page.has_settings
            && page.entries.iter().any(|entry| !entry.is_marker)
        {
            detail = Detail::Versions;
        }
        let has_tags = |entry: &Entry| entry.settings.as_ref().is_some_and(|found| !found.tags.is_empty());
        let is_tagged = page.entries.iter().any(has_tags);
        let following = match settings {
            Settings::WhileTagged if detail == Detail::Settings && !is_tagged => Detail::Versions,
            _ => detail,
        };
        let next = page.next.take();
        if next.as_ref() == Some(&place) {
            let _ = sender.send(Err(Trouble::Wrong("the source returned the same page twice".to_owned())));
            return;
        }
        if sender.send(Ok((page, detail))).is_err() {
            return;
        }
        is_first = false;
        detail = following;
        match next {
            None => return,
            Some(next) => place = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, id: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            version_id: Some(id.to_owned()),
            is_marker: false,
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
        for keys in [&["a", "b"][..], &[], &["b", "b", "c"], &["B"]] {
            let entries = keys.iter().map(|key| entry(key, "1")).collect();
            let page = Page { entries, next: None, has_settings: false };
            sender.send(Ok((page, Detail::Versions))).expect("room");
        }
        drop(sender);
        let entries = Vec::new().into_iter();
        let mut groups = Groups {
            pages,
            entries,
            ahead: None,
            last_key: None,
            detail: Detail::Versions,
            is_ordered: true,
        };
        let mut found = Vec::new();
        while let Some(group) = groups.next_group().expect("pages") {
            assert_eq!(groups.is_ordered, group.key != "B");
            found.push((group.key, group.entries.len()));
        }
        let expected = [("a", 1), ("b", 3), ("c", 1), ("B", 1)].map(|(key, count)| (key.to_owned(), count));
        assert_eq!(found, expected);
    }
}
