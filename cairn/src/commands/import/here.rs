//! The versions of a bucket here, key by key. Pages are fetched ahead.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use cairn_api::ObjectVersion;

use super::target::Target;
use crate::client::pages::{Pages, VERSIONS};
use crate::client::read;
use crate::failure::{Failure, Outcome};

/// Pages that are fetched before they are needed.
const PAGES_AHEAD: usize = 2;

/// The versions and delete markers of a bucket, in the order of the bytes of their keys, newest first.
pub(super) struct Here {
    pages: Receiver<Result<Vec<ObjectVersion>, Failure>>,
    entries: std::vec::IntoIter<ObjectVersion>,
    ahead: Option<ObjectVersion>,
}

impl Here {
    /// Begins to list a bucket.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        target: &'scope Target<'_>,
        bucket: &str,
    ) -> Self {
        let (sender, receiver) = sync_channel(PAGES_AHEAD);
        let mut pages = Pages::of_bucket(target.client, VERSIONS, bucket, "", None);
        scope.spawn(move || {
            loop {
                let page = match pages.next_page_by(|request| target.call(request)) {
                    Ok(None) => return,
                    Ok(Some(body)) => read(&body[VERSIONS.member]),
                    Err(refused) => Err(refused.into()),
                };
                let is_last = page.is_err();
                if sender.send(page).is_err() || is_last {
                    return;
                }
            }
        });
        Self { pages: receiver, entries: Vec::new().into_iter(), ahead: None }
    }

    fn fill(&mut self) -> Outcome {
        while self.ahead.is_none() {
            self.ahead = self.entries.next();
            if self.ahead.is_some() {
                break;
            }
            match self.pages.recv() {
                Err(_) => break,
                Ok(entries) => self.entries = entries?.into_iter(),
            }
        }
        Ok(())
    }

    /// Returns the key of the next versions.
    pub(super) fn key(&mut self) -> Result<Option<&str>, Failure> {
        self.fill()?;
        Ok(self.ahead.as_ref().map(|next| &*next.key))
    }

    /// Returns all versions of the next key.
    pub(super) fn next(&mut self) -> Result<Vec<ObjectVersion>, Failure> {
        let mut versions: Vec<ObjectVersion> = Vec::new();
        loop {
            self.fill()?;
            match self.ahead.take_if(|next| versions.first().is_none_or(|first| first.key == next.key)) {
                None => return Ok(versions),
                Some(next) => versions.push(next),
            }
        }
    }

    /// Returns the versions of a key, and passes over those of lesser keys.
    pub(super) fn of(&mut self, key: &str) -> Result<Vec<ObjectVersion>, Failure> {
        loop {
            match self.key()? {
                Some(next) if next.as_bytes() < key.as_bytes() => drop(self.next()?),
                Some(next) if next == key => return self.next(),
                _ => return Ok(Vec::new()),
            }
        }
    }
}
