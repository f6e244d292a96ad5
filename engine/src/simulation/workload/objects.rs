//! Operations on objects: puts with and without conditions, copies, deletes, slow reads, abandoned uploads.

use super::{SLOW_READER_YIELDS_BOUND, Workload, object_key, random_bytes, single_put};
use crate::error::EngineError;
use crate::fault::Random;
use crate::simulation::buckets::lock_of_new_version;
use crate::simulation::history::BucketKey;
use crate::simulation::key_state::{Change, Content};
use crate::simulation::violation::{Violation, ViolationKind};
use crate::slice::command::PutObject;
use crate::types::event::Origin;
use crate::types::object::{Attributes, DeleteOptions, EtagMatch, ListVersions, WriteCondition};
use crate::types::object_lock::ObjectLock;
use cairn_model::{VersionId, VersionName};
use futures_lite::future::yield_now;
use std::rc::Rc;
use std::sync::Arc;

impl Workload {
    /// Runs an operation on the object of the task's own key, or of a shared key.
    pub(super) async fn change_object(
        self: &Rc<Self>,
        own: &BucketKey,
        shared: &BucketKey,
        random: &mut Random,
    ) {
        let content = single_put(random_bytes(random, Self::sizes(own)));
        let anything = WriteCondition::default();
        let absent = WriteCondition::if_absent();
        match random.below(16) {
            0..=3 => drop(self.put(own, content, anything, ObjectLock::default()).await),
            4 => self.copy(own, own, random).await,
            5 => self.copy(shared, own, random).await,
            6 => drop(self.put(shared, content, anything, ObjectLock::default()).await),
            7 => drop(self.put(shared, content, absent, ObjectLock::default()).await),
            8 => self.put_if_unchanged(own, content, random).await,
            9..=11 => self.delete(own).await,
            12 => self.abandon(own, &content).await,
            13 => self.read(own, random).await,
            _ => self.read(shared, random).await,
        }
    }

    /// Puts an object.
    pub(super) async fn put(
        &self,
        key: &BucketKey,
        content: Content,
        condition: WriteCondition,
        lock: ObjectLock,
    ) -> Result<(), EngineError> {
        let must_be_absent = condition == WriteCondition::if_absent();
        let change = self.write_of(key, content.clone(), lock, None);
        let put = async {
            let payload = self.stage_all(key, &content.bytes).await?;
            let put = PutObject {
                bucket: Arc::clone(self.bucket(key)),
                key: object_key(key),
                payload,
                etag: content.etag,
                attributes: Attributes::default(),
                condition,
                lock,
                origin: Origin::default(),
            };
            self.engine.put_object(put).await
        };
        let outcome = self.change(key, change, put, |put| (put.version.0, put.is_null)).await;
        if must_be_absent && matches!(outcome, Err(EngineError::PreconditionFailed(_))) {
            self.history.borrow_mut().set_exists(key);
        }
        outcome.map(drop)
    }

    /// Returns the change that writes a version.
    pub(super) fn write_of(
        &self,
        key: &BucketKey,
        content: Content,
        lock: ObjectLock,
        upload: Option<u64>,
    ) -> Change {
        Change::Write { content, lock: lock_of_new_version(key.bucket, lock), upload }
    }

    /// Puts on the condition that the object has the entity tag of the last put, or a tag that no object has.
    async fn put_if_unchanged(&self, key: &BucketKey, content: Content, random: &mut Random) {
        let current = self.history.borrow().known_state(key).and_then(|state| state.current().cloned());
        let right = random.below(3) > 0;
        let tag = current.filter(|_| right).map_or_else(|| "none".to_owned(), |c| c.etag.to_string());
        let holds = tag != "none";
        let condition =
            WriteCondition { if_match: Some(EtagMatch::OneOf(vec![tag])), ..WriteCondition::default() };
        let outcome = self.put(key, content, condition, ObjectLock::default()).await;
        if outcome.is_ok() && !holds {
            self.report_wrong_outcome(format!("{key} was overwritten although its tag is another"));
        }
    }

    /// Copies the current object of a key to another, or to itself.
    pub(super) async fn copy(self: &Rc<Self>, from: &BucketKey, to: &BucketKey, random: &mut Random) {
        let Ok(open) = self.engine.open_whole(self.bucket(from), &object_key(from), None) else { return };
        let etag = open.info.etag;
        let Some(source) = self.history.borrow().content(from, etag) else {
            return self.report_mismatch(format!("{from} holds an object that was never put: {etag}"));
        };
        // The source may change before its bytes are read.
        for _ in 0..random.below(SLOW_READER_YIELDS_BOUND) {
            yield_now().await;
        }
        let content = single_put(source.bytes);
        let lock = ObjectLock::default();
        let change = self.write_of(to, content.clone(), lock, None);
        let copy = async {
            let (bucket, key) = (Arc::clone(self.bucket(to)), object_key(to));
            let mut permit = self.engine.admit_copy("client", &bucket, &key, open.info.size).await?;
            let payload = self.engine.copy_payload(&mut permit, open, &bucket, &key).await?;
            if payload.etag() != content.etag {
                self.report_wrong_outcome(format!("a copy of {from} has another MD5 than its bytes"));
            }
            let (attributes, condition) = (Attributes::default(), WriteCondition::default());
            let put = PutObject {
                bucket,
                key,
                payload,
                etag: content.etag,
                attributes,
                condition,
                lock,
                origin: Origin::default(),
            };
            self.engine.put_object(put).await
        };
        // `change` checks the outcome.
        drop(self.change(to, change, copy, |put| (put.version.0, put.is_null)).await);
    }

    /// Deletes the current object of the task's own key.
    pub(super) async fn delete(&self, key: &BucketKey) {
        let before = self.history.borrow().known_state(key);
        let object = object_key(key);
        let deleted = self.engine.delete_object(self.bucket(key), &object, DeleteOptions::default());
        let created = |outcome: &crate::types::object::DeleteOutcome| match outcome.version {
            Some(VersionName::Id(id)) => (id.0, false),
            Some(VersionName::Null) => (self.newest(key).0, true),
            // Its own name is new, and no import's.
            Some(VersionName::Imported(_)) | None => (0, true),
        };
        let outcome = self.change(key, Change::Delete, deleted, created).await;
        let existed = before.map(|state| state.current().is_some());
        if let Some((outcome, existed)) = outcome.ok().zip(existed)
            && outcome.existed != existed
        {
            let existed = outcome.existed;
            self.report_wrong_outcome(format!(
                "a delete of {key} reports that there was an object: {existed}"
            ));
        }
    }

    /// Returns the newest version of a key.
    fn newest(&self, key: &BucketKey) -> VersionId {
        let list = ListVersions { prefix: key.key.as_bytes(), delimiter: None, after: None, max: 1 };
        let page = self.engine.list_versions(self.bucket(key), &list).unwrap_or_default();
        page.versions.first().map_or(VersionId(0), |listed| listed.object.version)
    }

    /// Stops in the middle of a put, as a client that disconnects.
    async fn abandon(&self, key: &BucketKey, content: &Content) {
        if let Err(error) = self.stage(key, &content.bytes, content.bytes.len() / 2).await {
            self.check_refusal(key, &error);
        }
    }

    /// Reads slowly. The reader must see one whole version, whatever changes meanwhile.
    pub(super) async fn read(self: &Rc<Self>, key: &BucketKey, random: &mut Random) {
        let known = self.history.borrow().known_state(key);
        let open = match self.engine.open_whole(self.bucket(key), &object_key(key), None) {
            Ok(open) => open,
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => {
                if known.is_some_and(|state| state.current().is_some()) {
                    self.report_mismatch(format!("{key} was put and is missing"));
                }
                return;
            }
            Err(error) => {
                let detail = format!("{key} cannot be opened: {error}");
                return self.report(Violation::new(ViolationKind::OpenFailed, detail));
            }
        };
        let etag = open.info.etag;
        if known.is_some_and(|state| state.current().is_none_or(|content| content.etag != etag)) {
            self.report_mismatch(format!("{key} is not what was put last"));
        }
        let Some(content) = self.history.borrow().content(key, etag) else {
            return self.report_mismatch(format!("{key} holds an object that was never put: {etag}"));
        };
        let mut reader = open.read();
        let mut bytes = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(chunk.as_ref()),
                Ok(None) => break,
                Err(EngineError::Io(_)) if self.has_failing_disk => return,
                Err(error) => {
                    let detail = format!("{key} cannot be read: {error}");
                    return self.report(Violation::new(ViolationKind::ReadFailed, detail));
                }
            }
            for _ in 0..random.below(SLOW_READER_YIELDS_BOUND) {
                yield_now().await;
            }
        }
        self.reads.set(self.reads.get() + 1);
        if bytes != *content.bytes {
            let detail = format!("{key} was read torn: {} bytes", bytes.len());
            self.report(Violation::new(ViolationKind::TornRead, detail));
        }
    }
}
