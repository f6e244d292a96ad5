//! What is done to objects: puts with and without conditions, copies, deletes, slow reads, uploads that are given up.

use super::{SLOW_READER_TURNS_MAX, Workload, bytes, parsed, whole};
use crate::engine::PutObject;
use crate::error::EngineError;
use crate::lock::ObjectLock;
use crate::object::{Attributes, DeleteOptions, EtagMatch, ListVersions, WriteCondition};
use crate::simulation::Random;
use crate::simulation::buckets::lock_of_new;
use crate::simulation::history::Place;
use crate::simulation::state::{Change, Content};
use cairn_model::{VersionId, VersionName};
use futures_lite::future::yield_now;
use std::rc::Rc;
use std::sync::Arc;

impl Workload {
    /// An operation on the object of a key that the task owns, or of one that all share.
    pub(super) async fn change_object(self: &Rc<Self>, own: &Place, shared: &Place, random: &mut Random) {
        let content = whole(bytes(random, Self::sizes(own)));
        let anything = WriteCondition::default();
        let absent = WriteCondition { must_be_absent: true, ..WriteCondition::default() };
        match random.below(16) {
            0..=3 => drop(self.put(own, content, anything, ObjectLock::default()).await),
            4 => self.copy(own, own, random).await,
            5 => self.copy(shared, own, random).await,
            6 => drop(self.put(shared, content, anything, ObjectLock::default()).await),
            7 => drop(self.put(shared, content, absent, ObjectLock::default()).await),
            8 => self.put_if_unchanged(own, content, random).await,
            9..=11 => self.delete(own).await,
            12 => self.give_up(own, &content).await,
            13 => self.read(own, random).await,
            _ => self.read(shared, random).await,
        }
    }

    /// Puts; `Ok` when it was acknowledged.
    pub(super) async fn put(
        &self,
        place: &Place,
        content: Content,
        condition: WriteCondition,
        lock: ObjectLock,
    ) -> Result<(), EngineError> {
        let must_be_absent = condition.must_be_absent;
        let change = self.write_of(place, content.clone(), lock, None);
        let put = async {
            let payload = self.stage_all(place, &content.bytes).await?;
            let put = PutObject {
                bucket: Arc::clone(self.bucket(place)),
                key: parsed(place)?,
                payload,
                etag: content.etag,
                attributes: Attributes::default(),
                condition,
                lock,
            };
            self.engine.put_object(put).await
        };
        let outcome = self.change(place, change, put, |put| (put.version.0, put.is_null)).await;
        if must_be_absent && outcome == Err(EngineError::PreconditionFailed) {
            self.history.borrow_mut().exists(place);
        }
        outcome.map(drop)
    }

    /// The change that writes a version.
    pub(super) fn write_of(
        &self,
        place: &Place,
        content: Content,
        lock: ObjectLock,
        upload: Option<u64>,
    ) -> Change {
        Change::Write { content, lock: lock_of_new(place.bucket, lock), upload }
    }

    /// A put on the condition that the object is still the one that was put last, or one that never was.
    async fn put_if_unchanged(&self, place: &Place, content: Content, random: &mut Random) {
        let current = self.history.borrow().certain(place).and_then(|state| state.current().cloned());
        let right = random.below(3) > 0;
        let tag = current.filter(|_| right).map_or_else(|| "none".to_owned(), |c| c.etag.to_string());
        let holds = tag != "none";
        let condition =
            WriteCondition { if_match: Some(EtagMatch::OneOf(vec![tag])), ..WriteCondition::default() };
        let outcome = self.put(place, content, condition, ObjectLock::default()).await;
        if outcome.is_ok() && !holds {
            self.find(format!("{place} was overwritten although its tag is another"));
        }
    }

    /// Copies the current object of a key to another, or to itself.
    pub(super) async fn copy(self: &Rc<Self>, from: &Place, to: &Place, random: &mut Random) {
        let Ok(key) = parsed(from) else { return };
        let Ok(open) = self.engine.open_whole(self.bucket(from), &key, None) else { return };
        let etag = open.info.etag;
        let Some(source) = self.history.borrow().content(from, etag) else {
            return self.find(format!("{from} holds what nobody put: {etag}"));
        };
        // The source may change before its bytes are read.
        for _ in 0..random.below(SLOW_READER_TURNS_MAX) {
            yield_now().await;
        }
        let content = whole(source.bytes);
        let lock = ObjectLock::default();
        let change = self.write_of(to, content.clone(), lock, None);
        let copy = async {
            let (bucket, key) = (Arc::clone(self.bucket(to)), parsed(to)?);
            let payload = self.engine.copy_payload(open, &bucket, &key).await?;
            if payload.md5() != content.etag.md5 {
                self.find(format!("a copy of {from} has another MD5 than its bytes"));
            }
            let (attributes, condition) = (Attributes::default(), WriteCondition::default());
            let put = PutObject { bucket, key, payload, etag: content.etag, attributes, condition, lock };
            self.engine.put_object(put).await
        };
        // Refusals are told by `change`.
        drop(self.change(to, change, copy, |put| (put.version.0, put.is_null)).await);
    }

    /// Deletes the current object of a key that the task owns.
    pub(super) async fn delete(&self, place: &Place) {
        let Ok(key) = parsed(place) else { return };
        let before = self.history.borrow().certain(place);
        let deleted = self.engine.delete_object(self.bucket(place), &key, DeleteOptions::default());
        let made = |outcome: &crate::object::DeleteOutcome| match outcome.version {
            Some(VersionName::Id(id)) => (id.0, false),
            Some(VersionName::Null) => (self.newest(place).0, true),
            None => (0, true),
        };
        let outcome = self.change(place, Change::Delete, deleted, made).await;
        let existed = before.map(|state| state.current().is_some());
        if let Some((outcome, existed)) = outcome.ok().zip(existed)
            && outcome.existed != existed
        {
            self.find(format!("a delete of {place} says that there was an object: {}", outcome.existed));
        }
    }

    /// The newest version of a key.
    fn newest(&self, place: &Place) -> VersionId {
        let list = ListVersions { prefix: place.key.as_bytes(), delimiter: None, after: None, max: 1 };
        let page = self.engine.list_versions(self.bucket(place), &list).unwrap_or_default();
        page.versions.first().map_or(VersionId(0), |listed| listed.object.version)
    }

    /// A client that goes away in the middle of its upload.
    async fn give_up(&self, place: &Place, content: &Content) {
        if let Err(error) = self.stage(place, &content.bytes, content.bytes.len() / 2).await {
            self.refused(place, &error);
        }
    }

    /// A slow reader: sees one version, whole, whatever happens meanwhile.
    pub(super) async fn read(self: &Rc<Self>, place: &Place, random: &mut Random) {
        let Ok(key) = parsed(place) else { return };
        let certain = self.history.borrow().certain(place);
        let open = match self.engine.open_whole(self.bucket(place), &key, None) {
            Ok(open) => open,
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => {
                if certain.is_some_and(|state| state.current().is_some()) {
                    self.find(format!("{place} was put and is not there"));
                }
                return;
            }
            Err(error) => return self.find(format!("{place} cannot be opened: {error}")),
        };
        let etag = open.info.etag;
        if certain.is_some_and(|state| state.current().is_none_or(|content| content.etag != etag)) {
            self.find(format!("{place} is not what was put last"));
        }
        let Some(content) = self.history.borrow().content(place, etag) else {
            return self.find(format!("{place} holds what nobody put: {etag}"));
        };
        let mut reader = open.read();
        let mut bytes = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(chunk.as_ref()),
                Ok(None) => break,
                Err(EngineError::Io(_)) if self.failing => return,
                Err(error) => return self.find(format!("{place} cannot be read: {error}")),
            }
            for _ in 0..random.below(SLOW_READER_TURNS_MAX) {
                yield_now().await;
            }
        }
        self.reads.set(self.reads.get() + 1);
        if bytes != *content.bytes {
            self.find(format!("{place} was read torn: {} bytes", bytes.len()));
        }
    }
}
