//! Random operations on a bucket. Each is applied to the engine and to the model, which must give the same outcome.

use super::Random;
use super::reference::{FUTURE, Key, Model, PAST, Piece, Upload, Version, bytes};
use crate::support::{self, content, etag, get_version, name, stage};
use cairn_engine::{
    Attributes, Bucket, BucketChange, CompleteUpload, DeleteOptions, Engine, EngineError, NewUpload,
    ObjectLock, Origin, Precondition, PutObject, PutPart, Retention, RetentionMode, StagedPayload,
    Versioning, WriteCondition, composite_etag,
};
use cairn_md5::md5_digest;
use cairn_model::{Etag, ObjectKey, VersionId, VersionName, usize_of};
use std::rc::Rc;
use std::sync::Arc;

/// Highest part number.
const PART_NUMBER_MAX: u64 = 5;

/// A bucket in the engine and in the model.
pub(crate) struct Step<'s> {
    pub(crate) engine: &'s Rc<Engine>,
    pub(crate) model: &'s mut Model,
    pub(crate) random: &'s mut Random,
}

impl Step<'_> {
    fn bucket(&self) -> Arc<Bucket> {
        self.engine.store().bucket(&name(self.model.name)).expect("there")
    }

    fn held(&self, key: &str) -> Key {
        self.model.keys.get(key).cloned().unwrap_or_default()
    }

    fn some_version(&mut self, key: &str) -> Option<Version> {
        let held = self.held(key);
        let chosen = self.random.below(held.versions.len().max(1) as u64);
        held.versions.into_iter().nth(usize_of(chosen))
    }

    fn some_lock(&mut self) -> ObjectLock {
        if !self.model.object_lock {
            return ObjectLock::default();
        }
        ObjectLock {
            retention: self.some_retention(),
            legal_hold: (self.random.below(4) == 0).then_some(true),
        }
    }

    fn some_retention(&mut self) -> Option<Retention> {
        let until = if self.random.below(2) == 0 { PAST } else { FUTURE };
        let mode =
            if self.random.below(6) == 0 { RetentionMode::Compliance } else { RetentionMode::Governance };
        (self.random.below(2) == 0).then_some(Retention { mode, until })
    }

    /// Runs one operation.
    pub(crate) async fn run(&mut self) {
        let text = self.random.key();
        match self.random.below(16) {
            0 | 1 => self.delete(&text).await,
            2 | 3 => self.delete_version(&text).await,
            4 => self.read(&text).await,
            5 => self.change_versioning().await,
            6 | 7 => self.lock(&text).await,
            8..=10 => self.upload(&text).await,
            11 => self.copy(&text).await,
            _ => self.put(&text).await,
        }
    }

    async fn put_staged(&mut self, key: &str, payload: StagedPayload, tag: Etag, pieces: Vec<Piece>) {
        self.put_on(key, payload, tag, pieces, WriteCondition::default()).await;
    }

    async fn put_on(
        &mut self,
        key: &str,
        payload: StagedPayload,
        etag: Etag,
        pieces: Vec<Piece>,
        condition: WriteCondition,
    ) {
        let (lock, must_be_absent) = (self.some_lock(), condition == WriteCondition::if_absent());
        let (bucket, object, attributes) = (self.bucket(), support::key(key), Attributes::default());
        let put = PutObject {
            bucket,
            key: object,
            payload,
            etag,
            attributes,
            condition,
            lock,
            origin: Origin::default(),
        };
        let outcome = self.engine.put_object(put).await;
        let existed = self.held(key).current().is_some();
        if must_be_absent && existed {
            return assert_eq!(outcome, Err(EngineError::PreconditionFailed(Precondition::IfNoneMatch)));
        }
        let put = outcome.expect("puts");
        assert_eq!((put.replaced, put.is_null), (existed, self.model.versioning != Versioning::Enabled));
        self.model.write(key, put.version, Some(pieces), lock);
    }

    async fn put(&mut self, key: &str) {
        let piece = (self.random.below(u64::MAX), self.random.size());
        let bytes = content(piece.0, piece.1);
        let payload = stage(self.engine, &self.bucket(), &support::key(key), &bytes).await.expect("written");
        let must_be_absent = self.random.below(4) == 0;
        let condition = if must_be_absent { WriteCondition::if_absent() } else { WriteCondition::default() };
        self.put_on(key, payload, etag(&bytes), vec![piece], condition).await;
    }

    async fn copy(&mut self, to: &str) {
        let from = self.random.key();
        let Some(source) = self.some_version(&from).filter(|source| source.pieces.is_some()) else { return };
        let pieces = source.pieces.clone().expect("an object");
        let open = self.engine.open_whole(&self.bucket(), &support::key(&from), Some(source.name()));
        let copied =
            support::copy(self.engine, open.expect("opens"), &self.bucket(), &support::key(to)).await;
        // The layer above computes the entity tag of a copy.
        self.put_staged(to, copied, etag(&bytes(&pieces)), pieces).await;
    }

    async fn delete(&mut self, key: &str) {
        let object: ObjectKey = support::key(key);
        let outcome = self.engine.delete_object(&self.bucket(), &object, DeleteOptions::default()).await;
        let outcome = outcome.expect("deletes");
        assert_eq!(outcome.existed, self.held(key).current().is_some());
        if self.model.versioning == Versioning::Unversioned {
            self.model.keys.entry(key.to_owned()).or_default().versions.clear();
            return assert_eq!(outcome.version, None);
        }
        assert!(outcome.is_delete_marker);
        let id = match outcome.version.expect("a marker") {
            VersionName::Id(id) => id,
            // The sequence of a null delete marker is never compared.
            VersionName::Null => VersionId(0),
            VersionName::Imported(id) => panic!("nothing was imported: {id:?}"),
        };
        self.model.write(key, id, None, ObjectLock::default());
        assert_eq!(outcome.version, self.held(key).versions.first().map(Version::name));
    }

    async fn delete_version(&mut self, key: &str) {
        let Some(version) = self.some_version(key) else { return };
        let bypass_governance = self.random.below(3) > 0;
        let options =
            DeleteOptions { version: Some(version.name()), bypass_governance, ..DeleteOptions::default() };
        let (bucket, object) = (self.bucket(), support::key(key));
        let outcome = self.engine.delete_object(&bucket, &object, options.clone()).await;
        if version.is_locked(bypass_governance) {
            return assert_eq!(outcome, Err(EngineError::ObjectLocked), "{key:?} {version:?}");
        }
        let outcome = outcome.expect("deletes");
        assert!(outcome.existed && outcome.is_delete_marker == version.pieces.is_none());
        let held = self.model.keys.get_mut(key).expect("there");
        held.versions.retain(|other| other.name() != version.name());
        let again = self.engine.delete_object(&bucket, &object, options).await.expect("is no error");
        assert!(!again.existed);
    }

    async fn read(&mut self, key: &str) {
        let named = self.some_version(key).filter(|_| self.random.below(2) == 0);
        let held = self.held(key);
        let expected = match named.as_ref().or(held.versions.first()) {
            None => Err("nothing"),
            Some(version) => version.pieces.as_deref().map(bytes).ok_or("a delete marker"),
        };
        let name = named.map(|version| version.name());
        let read = get_version(self.engine, &self.bucket(), &support::key(key), name, 0..u64::MAX).await;
        let read = read.map(|(_, bytes)| bytes).map_err(|error| match error {
            EngineError::NoSuchKey => "nothing",
            EngineError::DeleteMarker { .. } => "a delete marker",
            other => panic!("{key:?}: {other}"),
        });
        assert!(read == expected, "read of {key:?} {name:?}");
    }

    async fn change_versioning(&mut self) {
        let versioning = if self.random.below(2) == 0 { Versioning::Enabled } else { Versioning::Suspended };
        if self.model.versioning == Versioning::Unversioned {
            return;
        }
        let change = BucketChange::Versioning(versioning);
        let changed = self.engine.store().change_bucket(&self.bucket(), change).await;
        if self.model.object_lock && versioning == Versioning::Suspended {
            return assert_eq!(changed, Err(EngineError::InvalidBucketState));
        }
        changed.expect("changes");
        self.model.versioning = versioning;
    }

    async fn lock(&mut self, key: &str) {
        let (bucket, object) = (self.bucket(), support::key(key));
        let Some(version) = self.some_version(key).filter(|version| version.pieces.is_some()) else { return };
        let (hold, retention) = (self.random.below(2) == 0, self.some_retention());
        let changes_hold = self.random.below(2) == 0;
        let name = Some(version.name());
        let set = if changes_hold {
            self.engine.set_legal_hold(&bucket, &object, name, hold).await
        } else {
            self.engine.set_retention(&bucket, &object, name, retention, true).await
        };
        if !self.model.object_lock {
            return assert_eq!(set, Err(EngineError::InvalidBucketState));
        }
        let compliance = Retention { mode: RetentionMode::Compliance, until: FUTURE };
        let is_kept = version.lock.retention == Some(compliance) && retention != Some(compliance);
        if !changes_hold && is_kept {
            return assert_eq!(set, Err(EngineError::ObjectLocked));
        }
        set.expect("locks");
        let versions = &mut self.model.keys.get_mut(key).expect("there").versions;
        let changed = versions.iter_mut().find(|other| other.id == version.id).expect("there");
        if changes_hold {
            changed.lock.legal_hold = Some(hold);
        } else {
            changed.lock.retention = retention;
        }
    }

    /// Creates an upload, or continues one.
    async fn upload(&mut self, key: &str) {
        let (bucket, object) = (self.bucket(), support::key(key));
        let held = self.held(key);
        let Some(upload) =
            held.uploads.first().filter(|_| held.uploads.len() > 1 || self.random.below(4) > 0)
        else {
            let lock = self.some_lock();
            let new = NewUpload { lock, ..NewUpload::default() };
            let id = self.engine.create_upload(&bucket, &object, new).await.expect("created").id;
            let upload = Upload { id, parts: Default::default(), lock };
            return self.model.keys.entry(key.to_owned()).or_default().uploads.push(upload);
        };
        if self.random.below(8) == 0 {
            self.engine.abort_upload(&bucket, &object, upload.id, Origin::default()).await.expect("aborts");
            let again = self.engine.abort_upload(&bucket, &object, upload.id, Origin::default()).await;
            assert_eq!(again, Err(EngineError::NoSuchUpload));
            return self.forget(key, upload);
        }
        // Several parts at once, so that some uploads have several parts.
        for _ in 0..1 + self.random.below(3) {
            let piece = (self.random.below(u64::MAX), self.random.size());
            let number = u16::try_from(1 + self.random.below(PART_NUMBER_MAX)).expect("small");
            let payload =
                stage(self.engine, &bucket, &object, &content(piece.0, piece.1)).await.expect("written");
            let (bucket, key_of_part, checksum) = (bucket.clone(), object.clone(), None);
            let part = PutPart { bucket, key: key_of_part, upload: upload.id, number, payload, checksum };
            self.engine.put_part(part).await.expect("puts");
            let uploads = &mut self.model.keys.get_mut(key).expect("there").uploads;
            let model = uploads.iter_mut().find(|model| model.id == upload.id).expect("there");
            model.parts.insert(number, piece);
        }
        if self.random.below(2) == 0 {
            let upload =
                self.held(key).uploads.into_iter().find(|model| model.id == upload.id).expect("there");
            self.complete(key, &upload).await;
        }
    }

    fn forget(&mut self, key: &str, upload: &Upload) {
        let uploads = &mut self.model.keys.get_mut(key).expect("there").uploads;
        uploads.retain(|model| model.id != upload.id);
    }

    async fn complete(&mut self, key: &str, upload: &Upload) {
        let mut named = upload.parts.clone();
        let last = *named.keys().next_back().expect("a part");
        named.retain(|number, _| *number == last || self.random.below(3) > 0);
        let parts: Vec<_> = named
            .iter()
            .map(|(number, (seed, size))| (*number, md5_digest(&content(*seed, *size))))
            .collect();
        let complete = |parts: Vec<(u16, [u8; 16])>| {
            self.engine.complete_upload(CompleteUpload {
                bucket: self.bucket(),
                key: support::key(key),
                upload: upload.id,
                parts,
                checksums: Vec::new(),
                condition: WriteCondition::default(),
                origin: Origin::default(),
            })
        };
        let wrong = vec![(parts[0].0, [0; 16])];
        assert_eq!(complete(wrong).await, Err(EngineError::InvalidPart(parts[0].0)));
        assert_eq!(complete(vec![(9, [0; 16])]).await, Err(EngineError::InvalidPart(9)));
        let done = complete(parts.clone()).await.expect("completes");
        let again = complete(parts.clone()).await.expect("answers again");
        assert_eq!((again.put.version, again.etag), (done.put.version, done.etag));
        assert_eq!(done.etag, composite_etag(parts.iter().map(|(_, md5)| *md5)));
        assert_eq!(done.put.replaced, self.held(key).current().is_some());
        self.forget(key, upload);
        self.model.write(key, done.put.version, Some(named.into_values().collect()), upload.lock);
    }
}
