//! A look at all that a bucket holds: lists of versions, objects, uploads and parts, and every version read as a whole.

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::object::{ListObjects, ListVersions, ListedVersion};
use crate::simulation::history::{History, Place};
use crate::simulation::state::{Content, KeyState, Parts, Version};
use crate::upload::ListUploads;
use cairn_model::{ObjectKey, UploadId, VersionName};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What was found, key by key.
pub(crate) type Found = BTreeMap<Place, KeyState>;

/// Entries of a page: few, so that lists go on at many places.
const PAGE: usize = 5;

/// A bucket that is looked at.
pub(crate) struct Look<'l> {
    pub(crate) engine: &'l Rc<Engine>,
    pub(crate) bucket: &'l Arc<Bucket>,
    pub(crate) number: usize,
    /// Where the bytes of parts are known from: only objects can be read.
    pub(crate) history: &'l History,
}

fn parsed(key: &str) -> Result<ObjectKey, String> {
    ObjectKey::parse(key).map_err(|_| format!("{key} is not a key"))
}

impl Look<'_> {
    fn place(&self, key: &str) -> Place {
        Place { bucket: self.number, key: key.to_owned() }
    }

    /// All that the bucket holds. `Err`: what cannot be read, or does not agree with itself.
    pub(crate) async fn everything(&self) -> Result<Found, String> {
        let mut found = Found::new();
        for listed in self.versions()? {
            let state = found.entry(self.place(&listed.object.key)).or_default();
            // The newest comes first.
            if listed.is_latest != state.versions.is_empty() {
                return Err(format!("the list calls the wrong version of {} its latest", listed.object.key));
            }
            let version = self.read(&listed).await?;
            if state.versions.insert(listed.object.version.0, version).is_some() {
                return Err(format!("the list has a version of {} twice", listed.object.key));
            }
        }
        let listed = self.objects()?;
        let current = found.iter().filter_map(|(place, state)| Some((&place.key, state.current()?.etag)));
        if !current.eq(listed.iter().map(|(key, etag)| (key, *etag))) {
            return Err(format!("the list of {} disagrees with its versions: {listed:?}", self.bucket.name));
        }
        self.uploads(&mut found)?;
        Ok(found)
    }

    fn versions(&self) -> Result<Vec<ListedVersion>, String> {
        let (mut versions, mut after) = (Vec::new(), None);
        loop {
            let list = ListVersions { prefix: b"", delimiter: None, after, max: PAGE };
            let page = self.engine.list_versions(self.bucket, &list);
            let page = page.map_err(|error| format!("no list of versions: {error}"))?;
            versions.extend(page.versions);
            after = page.next;
            if after.is_none() {
                return Ok(versions);
            }
        }
    }

    /// Keys and tags of the current objects.
    fn objects(&self) -> Result<Vec<(String, cairn_model::Etag)>, String> {
        let (mut objects, mut after) = (Vec::new(), None);
        loop {
            let list = ListObjects { prefix: b"", delimiter: None, after, max: PAGE };
            let page = self.engine.list_objects(self.bucket, &list);
            let page = page.map_err(|error| format!("no list: {error}"))?;
            objects.extend(page.objects.into_iter().map(|object| (object.key, object.etag)));
            after = page.next;
            if after.is_none() {
                return Ok(objects);
            }
        }
    }

    /// Reads a version as a whole.
    async fn read(&self, listed: &ListedVersion) -> Result<Version, String> {
        let (name, key) = (format!("{} {}", listed.object.key, listed.name), parsed(&listed.object.key)?);
        let is_null = listed.name == VersionName::Null;
        if listed.is_delete_marker {
            return Ok(Version { is_null, content: None, lock: Default::default() });
        }
        let open = self.engine.open_whole(self.bucket, &key, Some(listed.name));
        let open = open.map_err(|error| format!("{name} cannot be opened: {error}"))?;
        let info = open.info.clone();
        let mut reader = open.read();
        let mut bytes = Vec::new();
        while let Some(chunk) =
            reader.next().await.map_err(|error| format!("{name} cannot be read: {error}"))?
        {
            bytes.extend_from_slice(chunk.as_ref());
        }
        if (info.version, info.etag, info.size)
            != (listed.object.version, listed.object.etag, bytes.len() as u64)
        {
            return Err(format!("the list says something else of {name} than its record"));
        }
        let content = Content { etag: info.etag, bytes: Arc::new(bytes), parts: info.parts };
        Ok(Version { is_null, content: Some(content), lock: info.lock })
    }

    fn uploads(&self, found: &mut Found) -> Result<(), String> {
        let mut after = None;
        loop {
            let list = ListUploads { prefix: b"", delimiter: None, after, max: PAGE };
            let page = self.engine.list_uploads(self.bucket, &list);
            let page = page.map_err(|error| format!("no list of uploads: {error}"))?;
            for listed in page.uploads {
                let parts = self.parts(&listed.key, listed.id)?;
                found.entry(self.place(&listed.key)).or_default().uploads.insert(listed.id.0, parts);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn parts(&self, name: &str, upload: UploadId) -> Result<Parts, String> {
        let (key, mut parts, mut after) = (parsed(name)?, Parts::new(), 0);
        loop {
            let page = self.engine.list_parts(self.bucket, &key, upload, after, PAGE);
            let page = page.map_err(|error| format!("no list of parts of {name}: {error}"))?;
            for part in page.parts {
                let known = self.history.part(&self.place(name), part.md5);
                let bytes = known.filter(|bytes| bytes.len() as u64 == part.size);
                let bytes =
                    bytes.ok_or_else(|| format!("{name} has a part {} that nobody put", part.number))?;
                parts.insert(part.number, (part.md5, bytes));
                after = part.number;
            }
            if !page.is_truncated {
                return Ok(parts);
            }
        }
    }
}
