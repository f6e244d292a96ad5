//! Versions of another store: their ids, their place among the versions of a key, and everything that a write keeps.

use crate::support::{
    content, folder, get_version, key, name, options, put, stage, with_engine, with_engine_on,
};
use cairn_engine::{
    Attributes, Bucket, BucketChange, BucketSettings, DeleteOptions, Engine, EngineError, EventQuery,
    EventType, FilterForm, ImportOutcome, ImportVersion, ImportedContent, ImportedIdentity, LifecycleChange,
    LifecycleOptions, LifecycleRule, ListVersions, NewUpload, ObjectLock, Origin, PutPart, Retention,
    RetentionMode, RuleId, Store, StoreOptions, Tags, Usage, VersionChange, Versioning, WriteCondition,
    composite_etag,
};
use cairn_md5::md5_digest;
use cairn_model::{Etag, ImportedId, Timestamp, UploadId, VersionId, VersionName};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const YEAR_2001: u64 = 1_000_000_000_000;

/// Inspects the store, which compares ids, null versions, due index, usage and free map with the versions.
fn assert_clean(store: &Arc<Store>) {
    let store = Arc::clone(store);
    let inspect = std::thread::spawn(move || store.inspect(u64::MAX).expect("inspects"));
    let inspection = inspect.join().expect("ends");
    assert!(inspection.complete && inspection.is_clean(), "{:?}", inspection.findings);
}

async fn bucket(engine: &Rc<Engine>, versioning: &[Versioning]) -> Arc<Bucket> {
    let store = engine.store();
    let made = store.create_bucket(&name("imported"), BucketSettings::default(), Origin::default()).await;
    let bucket = made.expect("made");
    for state in versioning {
        store.change_bucket(&bucket, BucketChange::Versioning(*state)).await.expect("changed");
    }
    bucket
}

fn identity(id: &str, time: u64) -> ImportedIdentity {
    let id = (id != "null").then(|| ImportedId::parse(id).expect("well-formed"));
    ImportedIdentity { id, last_modified: Timestamp(time), etag: None, is_etag_opaque: false }
}

async fn import_content(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &str,
    identity: ImportedIdentity,
    content: ImportedContent,
) -> Result<ImportOutcome, EngineError> {
    let (bucket, key, origin) = (Arc::clone(bucket), key(object), Origin::default());
    engine.import_version(ImportVersion { bucket, key, identity, content, emits_events: false, origin }).await
}

async fn import(
    engine: &Rc<Engine>,
    bucket: &Arc<Bucket>,
    object: &str,
    identity: ImportedIdentity,
    bytes: Option<&[u8]>,
) -> Result<ImportOutcome, EngineError> {
    let content = match bytes {
        None => ImportedContent::DeleteMarker,
        Some(bytes) => {
            let payload = stage(engine, bucket, &key(object), bytes).await?;
            ImportedContent::Payload {
                payload: Box::new(payload),
                attributes: Attributes::default(),
                lock: ObjectLock::default(),
            }
        }
    };
    import_content(engine, bucket, object, identity, content).await
}

/// The versions of a key, newest first: name, date, size, whether it is the latest, whether it is a marker.
type Facts = (String, u64, u64, bool, bool);

fn versions(engine: &Engine, bucket: &Arc<Bucket>) -> Vec<(String, Facts)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        // One version per page, so that the list continues at every possible position.
        let list = ListVersions { prefix: b"", delimiter: None, after, max: 1 };
        let page = engine.list_versions(bucket, &list).expect("lists");
        all.extend(page.versions.into_iter().map(|version| {
            let object = version.object;
            let marker = version.is_delete_marker;
            (
                object.key,
                (version.name.to_string(), object.last_modified.0, object.size, version.is_latest, marker),
            )
        }));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn names(engine: &Engine, bucket: &Arc<Bucket>) -> Vec<String> {
    versions(engine, bucket).into_iter().map(|(_, facts)| facts.0).collect()
}

async fn delete(engine: &Engine, bucket: &Arc<Bucket>, object: &str, version: Option<&str>) {
    let version = version.map(|text| VersionName::parse(text).expect("well-formed"));
    let options = DeleteOptions { version, ..DeleteOptions::default() };
    engine.delete_object(bucket, &key(object), options).await.expect("deleted");
}

async fn write(engine: &Rc<Engine>, bucket: &Arc<Bucket>, object: &str, bytes: &[u8]) -> String {
    let put = put(engine, bucket, &key(object), bytes, WriteCondition::default()).await.expect("put");
    if put.is_null { "null".to_owned() } else { put.version.to_string() }
}

/// A client writes a null version in place of the imported one, between the look of an importer and what it asks for then.
#[test]
fn an_importer_neither_deletes_nor_changes_what_a_client_has_written() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine, &[]).await;
        let null = VersionName::parse("null").expect("well-formed");
        let delete = DeleteOptions { version: Some(null), only_imported: true, ..DeleteOptions::default() };
        let tags = || Tags::new(vec![("from".to_owned(), "the source".to_owned())], 10).expect("valid");
        for is_overwritten in [false, true] {
            import(&engine, &bucket, "a", identity("null", YEAR_2001), Some(b"imported"))
                .await
                .expect("imported");
            if is_overwritten {
                write(&engine, &bucket, "a", b"written here").await;
            }
            let changed = engine.change_imported(&bucket, &key("a"), null, VersionChange::Tags(tags())).await;
            let deleted = engine.delete_object(&bucket, &key("a"), delete.clone()).await.expect("decided");
            let found = engine.head_object(&bucket, &key("a"), None);
            if is_overwritten {
                assert!(matches!(changed, Err(EngineError::ImportConflict(_))), "{changed:?}");
                assert!(!deleted.existed && found.expect("is there").attributes.tags == Tags::default());
            } else {
                changed.expect("is the imported one");
                assert!(deleted.existed && matches!(found, Err(EngineError::NoSuchKey)));
            }
        }
        assert_clean(engine.store());
    });
}

#[test]
fn imported_versions_keep_ids_and_dates_and_are_below_what_was_written_here() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine, &[Versioning::Enabled]).await;
        let own = write(&engine, &bucket, "a", b"written here").await;
        let uuid = "2f6f7a1e-38a1-4f4a-9b43-5c2f8c7d1e00";
        for (id, time, bytes) in [
            ("second", YEAR_2001 + 5, Some(&[2; 100_000][..])),
            (uuid, YEAR_2001, Some(&b"first"[..])),
            ("marker", YEAR_2001 + 9, None),
            // In the future, and of the form of this store's ids.
            ("00000000000f4240", u64::pow(2, 42), Some(&b"from another Cairn"[..])),
        ] {
            let outcome = import(&engine, &bucket, "a", identity(id, time), bytes).await;
            assert_eq!(outcome, Ok(ImportOutcome::Created), "{id}");
            let again = import(&engine, &bucket, "a", identity(id, time), bytes).await;
            assert_eq!(again, Ok(ImportOutcome::Unchanged), "{id}");
        }
        assert_eq!(names(&engine, &bucket), [&own, "00000000000f4240", "marker", "second", uuid]);
        let (info, bytes) = get_version(&engine, &bucket, &key("a"), VersionName::parse(uuid), 0..u64::MAX)
            .await
            .expect("read");
        assert_eq!(
            (bytes.as_slice(), info.last_modified, info.etag),
            (&b"first"[..], Timestamp(YEAR_2001), Etag::single(md5_digest(b"first")))
        );
        let current = engine.head_object(&bucket, &key("a"), None).expect("there");
        assert_eq!(current.version_name().to_string(), own);
        // The number of an imported version is no id.
        let number = VersionName::Id(VersionId::imported_at(YEAR_2001).expect("early"));
        assert_eq!(engine.head_object(&bucket, &key("a"), Some(number)), Err(EngineError::NoSuchVersion));
        // Later versions do not get the id of an imported one.
        let next = write(&engine, &bucket, "a", b"later").await;
        assert!(next.as_str() > "00000000000f4240", "{next}");
        assert_clean(engine.store());

        for version in ["second", "marker", uuid, "00000000000f4240", "marker"] {
            delete(&engine, &bucket, "a", Some(version)).await;
            assert_clean(engine.store());
        }
        assert_eq!(names(&engine, &bucket), [next, own]);
    });
}

#[test]
fn a_different_version_under_a_known_id_is_refused() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine, &[Versioning::Enabled]).await;
        let own = write(&engine, &bucket, "a", b"own").await;
        import(&engine, &bucket, "a", identity("x", 5), Some(b"one")).await.expect("imported");
        import(&engine, &bucket, "a", identity("m", 7), None).await.expect("imported");
        let before = versions(&engine, &bucket);
        let other_tag = ImportedIdentity { etag: Some(Etag::opaque([1; 16])), ..identity("x", 5) };
        for (identity, bytes) in [
            (identity("x", 6), Some(&b"one"[..])),
            (identity("x", 5), Some(&b"two"[..])),
            (identity("x", 5), None),
            (identity("m", 7), Some(&b""[..])),
            (identity("m", 8), None),
            (other_tag, Some(&b"one"[..])),
            (identity(&own, 5), Some(&b"own"[..])),
            (identity("7fffffffffffffff", 5), Some(&b"own"[..])),
            (identity("new", u64::pow(2, 43)), Some(&b"own"[..])),
        ] {
            let outcome = import(&engine, &bucket, "a", identity, bytes).await;
            assert!(matches!(outcome, Err(EngineError::ImportConflict(_))), "{identity:?}: {outcome:?}");
        }
        // The same id of another key is another version.
        assert_eq!(
            import(&engine, &bucket, "b", identity("x", 9), Some(b"b")).await,
            Ok(ImportOutcome::Created)
        );
        assert_eq!(versions(&engine, &bucket)[..3], before);
        assert_clean(engine.store());
    });
}

#[test]
fn null_versions_are_replaced_unless_a_client_wrote_them() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine, &[]).await;
        let marker = import(&engine, &bucket, "a", identity("null", 1), None).await;
        let with_id = import(&engine, &bucket, "a", identity("x", 1), Some(b"")).await;
        assert_eq!(
            [marker, with_id],
            [Err(EngineError::InvalidBucketState), Err(EngineError::InvalidBucketState)]
        );
        for (time, bytes, expected) in [
            (5, b"one", ImportOutcome::Created),
            (5, b"one", ImportOutcome::Unchanged),
            (6, b"two", ImportOutcome::Replaced),
            (4, b"old", ImportOutcome::Replaced),
        ] {
            assert_eq!(
                import(&engine, &bucket, "a", identity("null", time), Some(bytes)).await,
                Ok(expected)
            );
            assert_clean(engine.store());
        }
        let held = Usage { objects: 1, bytes: 3, versions: 1, version_bytes: 3, ..Usage::default() };
        assert_eq!(bucket.usage(), held);
        write(&engine, &bucket, "a", b"client").await;
        assert_eq!(
            import(&engine, &bucket, "a", identity("null", u64::pow(2, 42)), Some(b"x")).await,
            Ok(ImportOutcome::Kept)
        );
        assert_eq!(engine.head_object(&bucket, &key("a"), None).expect("there").size, 6);
        assert_clean(engine.store());
    });
}

#[test]
fn multipart_object_has_the_entity_tag_of_its_parts() {
    with_engine(folder().path(), |engine| async move {
        let (bucket, object) = (bucket(&engine, &[Versioning::Enabled]).await, key("a"));
        let pieces = [content(1, 5 << 20), content(2, 5 << 20), content(3, 100)];
        let begin = async |id: &str, etag| {
            let upload =
                engine.create_upload(&bucket, &object, NewUpload::default()).await.expect("begun").id;
            for (number, piece) in (1..).zip(&pieces) {
                let payload = stage(&engine, &bucket, &object, piece).await.expect("staged");
                let (bucket, key) = (Arc::clone(&bucket), object.clone());
                engine
                    .put_part(PutPart { bucket, key, upload, number, payload, checksum: None })
                    .await
                    .expect("put");
            }
            let is_etag_opaque = id == "z";
            let identity = ImportedIdentity { etag, is_etag_opaque, ..identity(id, YEAR_2001) };
            (
                upload,
                import_content(
                    &engine,
                    &bucket,
                    "a",
                    identity,
                    ImportedContent::Upload { upload, checksum: None },
                )
                .await,
            )
        };
        let expected = composite_etag(pieces.iter().map(|piece| md5_digest(piece)));
        assert_eq!(begin("x", None).await.1, Ok(ImportOutcome::Created));
        let (upload, again) = begin("x", Some(expected)).await;
        assert_eq!(again, Ok(ImportOutcome::Unchanged));
        engine.abort_upload(&bucket, &object, upload, Origin::default()).await.expect("the upload is left");
        let (upload, wrong) = begin("y", Some(Etag { md5: [1; 16], parts: 2 })).await;
        assert!(matches!(wrong, Err(EngineError::ImportConflict(_))));
        engine.abort_upload(&bucket, &object, upload, Origin::default()).await.expect("the upload is left");
        let sealed = Etag { md5: [7; 16], parts: 3 };
        let (upload, wrong) = begin("y", Some(sealed)).await;
        assert!(matches!(wrong, Err(EngineError::ImportConflict(_))));
        engine.abort_upload(&bucket, &object, upload, Origin::default()).await.expect("the upload is left");
        assert_eq!(begin("z", Some(sealed)).await.1, Ok(ImportOutcome::Created));
        let missing = import_content(
            &engine,
            &bucket,
            "a",
            identity("w", 1),
            ImportedContent::Upload { upload: UploadId(7), checksum: None },
        )
        .await;
        assert_eq!(missing, Err(EngineError::NoSuchUpload));
        for (id, etag) in [("x", expected), ("z", sealed)] {
            let (info, bytes) = get_version(&engine, &bucket, &object, VersionName::parse(id), 0..u64::MAX)
                .await
                .expect("read");
            assert!(
                bytes == pieces.concat() && info.etag == etag && info.last_modified == Timestamp(YEAR_2001)
            );
        }
        assert_clean(engine.store());
        delete(&engine, &bucket, "a", Some("x")).await;
        delete(&engine, &bucket, "a", Some("z")).await;
        assert_eq!(bucket.usage(), Usage::default());
        assert_clean(engine.store());
    });
}

#[test]
fn locks_and_default_retention_are_those_of_the_source() {
    with_engine(folder().path(), |engine| async move {
        let settings = BucketSettings { object_lock: true, ..BucketSettings::default() };
        let locked =
            engine.store().create_bucket(&name("locked"), settings, Origin::default()).await.expect("made");
        let retention = Retention { mode: RetentionMode::Compliance, until: Timestamp(u64::pow(2, 42)) };
        let lock = ObjectLock { retention: Some(retention), legal_hold: Some(false) };
        let payload = stage(&engine, &locked, &key("a"), b"locked").await.expect("staged");
        let content =
            ImportedContent::Payload { payload: Box::new(payload), attributes: Attributes::default(), lock };
        import_content(&engine, &locked, "a", identity("x", 5), content).await.expect("imported");
        assert_eq!(
            engine.head_object(&locked, &key("a"), VersionName::parse("x")).expect("there").lock,
            lock
        );
        let options = DeleteOptions { version: VersionName::parse("x"), ..DeleteOptions::default() };
        assert_eq!(engine.delete_object(&locked, &key("a"), options).await, Err(EngineError::ObjectLocked));

        let plain = bucket(&engine, &[Versioning::Enabled]).await;
        let payload = stage(&engine, &plain, &key("a"), b"locked").await.expect("staged");
        let content =
            ImportedContent::Payload { payload: Box::new(payload), attributes: Attributes::default(), lock };
        let refused = import_content(&engine, &plain, "a", identity("x", 5), content).await;
        assert_eq!(refused, Err(EngineError::InvalidBucketState));
        assert_clean(engine.store());
    });
}

#[test]
fn events_come_only_if_asked_for() {
    with_engine(folder().path(), |engine| async move {
        let bucket = bucket(&engine, &[Versioning::Enabled]).await;
        let events = || {
            let page = engine.store().events(&EventQuery::default()).expect("reads");
            let of_objects =
                page.events.into_iter().filter_map(|event| event.object.map(|object| (event.kind, object)));
            of_objects
                .map(|(kind, object)| (kind, object.version.map(|version| version.to_string())))
                .collect::<Vec<_>>()
        };
        import(&engine, &bucket, "a", identity("quiet", 5), Some(b"one")).await.expect("imported");
        assert_eq!(events(), []);
        let payload = stage(&engine, &bucket, &key("a"), b"two").await.expect("staged");
        let content = ImportedContent::Payload {
            payload: Box::new(payload),
            attributes: Attributes::default(),
            lock: ObjectLock::default(),
        };
        let (key, identity, origin) = (key("a"), identity("told", 6), Origin::default());
        let import =
            ImportVersion { bucket: bucket.clone(), key, identity, content, emits_events: true, origin };
        engine.import_version(import).await.expect("imported");
        delete(&engine, &bucket, "a", Some("quiet")).await;
        let expected = [
            (EventType::ObjectCreated, Some("told".to_owned())),
            (EventType::ObjectDeleted, Some("quiet".to_owned())),
        ];
        assert_eq!(events(), expected);
    });
}

/// A rule that removes nothing for a long time, so that the due index has all versions.
fn distant_rule() -> LifecycleRule {
    LifecycleRule {
        id: RuleId::new(Timestamp(YEAR_2001)).expect("random numbers"),
        s3_id: None,
        prefix: String::new(),
        tags: Tags::default(),
        form: FilterForm::default(),
        expiration_days: None,
        noncurrent_days: Some(30_000),
        newer_noncurrent_versions: 0,
        expired_delete_markers: true,
        abort_uploads_days: None,
        is_enabled: true,
        created_at: Timestamp(YEAR_2001),
    }
}

/// A version of the reference: order (written here or not, date, n-th import), name, date, content.
#[derive(Clone, Debug)]
struct Expected {
    order: (bool, u64, u64),
    name: String,
    time: u64,
    bytes: Option<Vec<u8>>,
}

/// Random changes of one key, and what it must hold after them.
struct RandomChanges {
    engine: Rc<Engine>,
    bucket: Arc<Bucket>,
    numbers: std::vec::IntoIter<u64>,
    /// Newest first.
    expected: Vec<Expected>,
}

impl RandomChanges {
    fn number(&mut self, below: usize) -> usize {
        usize::try_from(self.numbers.next().expect("enough")).expect("64 bits") % below
    }

    async fn change(&mut self, step: u64) {
        let bytes = if self.number(4) > 0 { Some(content(step, 10 + self.number(2) * 30_000)) } else { None };
        match self.number(5) {
            0 => self.write(step, bytes).await,
            1 if !self.expected.is_empty() => {
                let index = self.number(self.expected.len());
                let removed = self.expected.remove(index);
                delete(&self.engine, &self.bucket, "k", Some(&removed.name)).await;
            }
            _ => self.import(step, bytes).await,
        }
        self.expected.sort_by_key(|version| std::cmp::Reverse(version.order));
    }

    /// Puts an object, or deletes the current one.
    async fn write(&mut self, step: u64, bytes: Option<Vec<u8>>) {
        let name = match &bytes {
            Some(bytes) => write(&self.engine, &self.bucket, "k", bytes).await,
            None => {
                let deleted =
                    self.engine.delete_object(&self.bucket, &key("k"), DeleteOptions::default()).await;
                deleted.expect("deleted").version.expect("a marker").to_string()
            }
        };
        self.expected.retain(|version| version.name != "null" || name != "null");
        let time = versions(&self.engine, &self.bucket)[0].1.1;
        self.expected.push(Expected { order: (true, step, 0), name, time, bytes });
    }

    async fn import(&mut self, step: u64, bytes: Option<Vec<u8>>) {
        let name = if self.number(4) == 0 { "null".to_owned() } else { format!("id-{step}") };
        let time = YEAR_2001 + self.number(6) as u64;
        let outcome = import(&self.engine, &self.bucket, "k", identity(&name, time), bytes.as_deref()).await;
        let before = self.expected.iter().position(|version| version.name == name);
        let wanted = match before.map(|index| &self.expected[index]) {
            None => ImportOutcome::Created,
            Some(version) if version.order.0 => ImportOutcome::Kept,
            Some(version) if (version.time, &version.bytes) == (time, &bytes) => ImportOutcome::Unchanged,
            Some(_) => ImportOutcome::Replaced,
        };
        assert_eq!(outcome, Ok(wanted), "step {step}");
        if matches!(wanted, ImportOutcome::Created | ImportOutcome::Replaced) {
            before.map(|index| self.expected.remove(index));
            self.expected.push(Expected { order: (false, time, step), name, time, bytes });
        }
    }

    fn check_list(&self, step: u64) {
        let wanted = self.expected.iter().enumerate().map(|(index, version)| {
            let size = version.bytes.as_ref().map_or(0, Vec::len) as u64;
            ("k".to_owned(), (version.name.clone(), version.time, size, index == 0, version.bytes.is_none()))
        });
        assert_eq!(versions(&self.engine, &self.bucket), wanted.collect::<Vec<_>>(), "step {step}");
    }

    async fn check_content(&self) {
        assert_clean(self.engine.store());
        for version in self.expected.iter().filter(|version| version.bytes.is_some()) {
            let name = VersionName::parse(&version.name);
            let read = get_version(&self.engine, &self.bucket, &key("k"), name, 0..u64::MAX).await;
            assert_eq!(Some(read.expect("read").1), version.bytes);
        }
    }
}

/// Regression: versions of the same time had one entry of the due index together, so only one of them was ever removed.
#[test]
fn lifecycle_rules_are_about_all_imported_versions_of_the_same_time() {
    let folder = folder();
    let options = StoreOptions { slices: Some(1), ..options(folder.path()) };
    with_engine_on(options, |engine| async move {
        let lifecycle = LifecycleOptions { interval: Duration::from_secs(1), batch_size: 10 };
        for is_indexed_before in [true, false] {
            let bucket = bucket(&engine, &[]).await;
            let rule = LifecycleRule { expiration_days: Some(30), ..distant_rule() };
            let change = BucketChange::Lifecycle(LifecycleChange::Add(rule));
            if is_indexed_before {
                engine.store().change_bucket(&bucket, change.clone()).await.expect("added");
                engine.apply_lifecycle(lifecycle).await.expect("makes the index");
            }
            for object in ["a", "b", "c"] {
                import(&engine, &bucket, object, identity("null", YEAR_2001), Some(b"x"))
                    .await
                    .expect("imported");
            }
            assert_clean(engine.store());
            if !is_indexed_before {
                engine.store().change_bucket(&bucket, change).await.expect("added");
            }
            let counts = engine.apply_lifecycle(lifecycle).await.expect("removes");
            assert_eq!((counts.expired_objects, bucket.usage()), (3, Usage::default()));
            assert_clean(engine.store());
            engine.store().delete_bucket(&bucket.name, Origin::default()).await.expect("empty");
        }
    });
}

/// A lifecycle rule gives the bucket a due index, which the inspection compares.
#[test]
fn random_imports_and_writes_leave_what_a_simple_model_holds() {
    let folder = folder();
    let options = StoreOptions { slices: Some(2), ..options(folder.path()) };
    with_engine_on(options, |engine| async move {
        for (seed, states) in
            [(1, &[Versioning::Enabled][..]), (2, &[Versioning::Enabled, Versioning::Suspended])]
        {
            let bucket = bucket(&engine, states).await;
            let rule = BucketChange::Lifecycle(LifecycleChange::Add(distant_rule()));
            engine.store().change_bucket(&bucket, rule).await.expect("added");
            let numbers = content(seed, 8 * 4000);
            let numbers = numbers.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let numbers = numbers.collect::<Vec<_>>().into_iter();
            let (engine, expected) = (Rc::clone(&engine), Vec::new());
            let mut changes = RandomChanges { engine, bucket, numbers, expected };
            for step in 0..500 {
                changes.change(step).await;
                changes.check_list(step);
                if step % 10 == 0 {
                    changes.check_content().await;
                }
            }
            let RandomChanges { engine, bucket, expected, .. } = changes;
            for version in expected {
                delete(&engine, &bucket, "k", Some(&version.name)).await;
            }
            assert_eq!(bucket.usage(), Usage::default());
            engine.store().delete_bucket(&bucket.name, Origin::default()).await.expect("empty");
        }
    });
}
