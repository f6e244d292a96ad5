//! Reads all that a bucket holds: lists of versions, objects, uploads and parts, and the payload of every version.

use crate::api::engine::Engine;
use crate::simulation::history::{BucketKey, History};
use crate::simulation::key_state::{Content, KeyState, Parts, Version};
use crate::simulation::violation::{Violation, ViolationKind};
use crate::types::bucket::Bucket;
use crate::types::object::{ListObjects, ListVersions, ListedVersion};
use crate::types::upload::ListUploads;
use cairn_model::{Etag, ObjectKey, UploadId, VersionName};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The state of every key that holds anything.
pub(crate) type Contents = BTreeMap<BucketKey, KeyState>;

/// Entries of a page: few, so that lists continue at many places.
const PAGE_ENTRIES: usize = 5;

/// Reads one bucket.
pub(crate) struct BucketReader<'b> {
    pub(crate) engine: &'b Rc<Engine>,
    pub(crate) bucket: &'b Arc<Bucket>,
    /// Number of the bucket.
    pub(crate) number: usize,
    /// Provides the bytes of parts: parts of unfinished uploads cannot be read.
    pub(crate) history: &'b History,
}

fn list_mismatch(detail: String) -> Violation {
    Violation::new(ViolationKind::ListMismatch, detail)
}

fn object_key(key: &str) -> Result<ObjectKey, Violation> {
    ObjectKey::parse(key).map_err(|_| list_mismatch(format!("{key} is not a valid key")))
}

impl BucketReader<'_> {
    fn bucket_key(&self, key: &str) -> BucketKey {
        BucketKey { bucket: self.number, key: key.to_owned() }
    }

    /// Reads all that the bucket holds.
    ///
    /// # Errors
    /// An error when something cannot be read, or lists and records disagree.
    pub(crate) async fn read_all(&self) -> Result<Contents, Violation> {
        let mut contents = Contents::new();
        for listed in self.versions()? {
            let state = contents.entry(self.bucket_key(&listed.object.key)).or_default();
            // The newest version comes first.
            if listed.is_latest != state.versions.is_empty() {
                let key = listed.object.key;
                return Err(list_mismatch(format!("the list marks the wrong version of {key} as latest")));
            }
            let version = self.version(&listed).await?;
            if state.versions.insert(listed.object.version, version).is_some() {
                return Err(list_mismatch(format!("the list has a version of {} twice", listed.object.key)));
            }
        }
        let listed = self.objects()?;
        let current = contents.iter().filter_map(|(key, state)| Some((&key.key, state.current()?.etag)));
        if !current.eq(listed.iter().map(|(key, etag)| (key, *etag))) {
            return Err(list_mismatch(format!(
                "the list of {} disagrees with its versions: {listed:?}",
                self.bucket.name
            )));
        }
        self.uploads(&mut contents)?;
        Ok(contents)
    }

    fn versions(&self) -> Result<Vec<ListedVersion>, Violation> {
        let (mut versions, mut after) = (Vec::new(), None);
        loop {
            let list = ListVersions { prefix: b"", delimiter: None, after, max: PAGE_ENTRIES };
            let page = self.engine.list_versions(self.bucket, &list);
            let page = page.map_err(|error| list_mismatch(format!("versions cannot be listed: {error}")))?;
            versions.extend(page.versions);
            after = page.next;
            if after.is_none() {
                return Ok(versions);
            }
        }
    }

    /// Keys and entity tags of the current objects.
    fn objects(&self) -> Result<Vec<(String, Etag)>, Violation> {
        let (mut objects, mut after) = (Vec::new(), None);
        loop {
            let list = ListObjects { prefix: b"", delimiter: None, after, max: PAGE_ENTRIES };
            let page = self.engine.list_objects(self.bucket, &list);
            let page = page.map_err(|error| list_mismatch(format!("objects cannot be listed: {error}")))?;
            objects.extend(page.objects.into_iter().map(|object| (object.key, object.etag)));
            after = page.next;
            if after.is_none() {
                return Ok(objects);
            }
        }
    }

    /// Reads a version with its whole payload.
    async fn version(&self, listed: &ListedVersion) -> Result<Version, Violation> {
        let (name, key) = (format!("{} {}", listed.object.key, listed.name), object_key(&listed.object.key)?);
        let is_null = listed.name == VersionName::Null;
        if listed.is_delete_marker {
            return Ok(Version { is_null, content: None, lock: Default::default() });
        }
        let open = self.engine.open_whole(self.bucket, &key, Some(listed.name)).map_err(|error| {
            Violation::new(ViolationKind::OpenFailed, format!("{name} cannot be opened: {error}"))
        })?;
        let info = open.info.clone();
        let mut reader = open.read();
        let mut bytes = Vec::new();
        while let Some(chunk) = reader.next().await.map_err(|error| {
            Violation::new(ViolationKind::ReadFailed, format!("{name} cannot be read: {error}"))
        })? {
            bytes.extend_from_slice(chunk.as_ref());
        }
        if (info.version, info.etag, info.size)
            != (listed.object.version, listed.object.etag, bytes.len() as u64)
        {
            return Err(list_mismatch(format!("the list and the record of {name} disagree")));
        }
        let content = Content { etag: info.etag, bytes: Arc::new(bytes), parts: info.parts };
        Ok(Version { is_null, content: Some(content), lock: info.lock })
    }

    fn uploads(&self, contents: &mut Contents) -> Result<(), Violation> {
        let mut after = None;
        loop {
            let list = ListUploads { prefix: b"", delimiter: None, after, max: PAGE_ENTRIES };
            let page = self.engine.list_uploads(self.bucket, &list);
            let page = page.map_err(|error| list_mismatch(format!("uploads cannot be listed: {error}")))?;
            for listed in page.uploads {
                let parts = self.parts(&listed.key, listed.id)?;
                contents.entry(self.bucket_key(&listed.key)).or_default().uploads.insert(listed.id.0, parts);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn parts(&self, name: &str, upload: UploadId) -> Result<Parts, Violation> {
        let (key, mut parts, mut after) = (object_key(name)?, Parts::new(), 0);
        loop {
            let page = self.engine.list_parts(self.bucket, &key, upload, after, PAGE_ENTRIES);
            let page = page
                .map_err(|error| list_mismatch(format!("the parts of {name} cannot be listed: {error}")))?;
            for part in page.parts {
                let known = self.history.part(&self.bucket_key(name), part.md5);
                let bytes = known.filter(|bytes| bytes.len() as u64 == part.size).ok_or_else(|| {
                    let detail = format!("{name} has part {}, which was never put", part.number);
                    Violation::new(ViolationKind::StateMismatch, detail)
                })?;
                parts.insert(part.number, (part.md5, bytes));
                after = part.number;
            }
            if !page.is_truncated {
                return Ok(parts);
            }
        }
    }
}
