//! `GET /api/v1/buckets/{bucket}/archive?prefix=[&at=]` and `POST …/archive`: objects as one ZIP archive.
//!
//! The archive is made while it is sent, one object after the other, and every block is checked as it is read. After damage
//! the archive ends without its list, so no program takes it for complete. Objects are those that exist when their turn
//! comes. Names and sizes are counted first: an archive that would have too many entries is refused before it begins, and
//! so is one with a key that does not exist.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use cairn_api::ArchiveObjects;
use cairn_engine::{
    Bucket, Engine, EngineError, ListObjects, ListPosition, ListedObject, OpenObject, PayloadChunk,
    PayloadReader,
};
use cairn_http1::attachment;
use cairn_model::{ObjectKey, Timestamp, u64_of};
use cairn_net::{BodySource, Chunk, ResponseBody};
use cairn_transfer::{ArchiveNames, ZipEntry, ZipWriter};
use futures_lite::future::yield_now;
use http::{Method, StatusCode};

use super::content::SANDBOX;
use super::moment::{AT, require_versions};
use crate::access::ReadAudit;
use crate::archives::ArchivePermit;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{
    ARCHIVE_BUFFER_BYTES, ARCHIVE_ENTRIES_MAX, ARCHIVE_LIST_BYTES_MAX, LIST_ENTRIES_MAX, LIST_YIELD_ENTRIES,
};
use crate::reply::{ChangeRecord, Reply};
use crate::request::names::object_key;

/// `GET /api/v1/buckets/{bucket}/archive`.
pub(crate) async fn archive_prefix(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = &call.parameters;
    let (prefix, at) = (query.text("prefix").unwrap_or_default().to_owned(), query.time(AT)?);
    if at.is_some() {
        require_versions(&bucket)?;
    }
    let members = || Members::below(prefix.clone(), at);
    let name = prefix.trim_end_matches('/');
    let name = if name.is_empty() { bucket.name.to_string() } else { name.to_owned() };
    reply(&call, &bucket, &name, members).await
}

/// `POST /api/v1/buckets/{bucket}/archive`.
pub(crate) async fn archive_keys(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let ArchiveObjects { keys } = call.json().await?;
    if keys.is_empty() || keys.len() > LIST_ENTRIES_MAX {
        return Err(AdminError::invalid(format!("keys: give 1 to {LIST_ENTRIES_MAX}")));
    }
    let keys = keys.iter().map(|key| object_key(key)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = HashSet::new();
    let keys: Vec<_> = keys.into_iter().filter(|key| seen.insert(key.clone())).collect();
    let name = bucket.name.to_string();
    reply(&call, &bucket, &name, || Members::Named(keys.clone().into_iter())).await
}

/// Counts the members, and begins the archive.
async fn reply(
    call: &Call<'_, '_>,
    bucket: &Arc<Bucket>,
    name: &str,
    members: impl Fn() -> Members,
) -> Result<Reply, AdminError> {
    let permit = call.context.archives.admit()?;
    let engine = Rc::clone(call.engine()?);
    call.wait_for_read(check(&engine, bucket, members())).await?;
    let headers = vec![
        ("content-type", "application/zip".to_owned()),
        (SANDBOX.0, SANDBOX.1.to_owned()),
        ("content-disposition", attachment(&format!("{name}.zip"))),
    ];
    let body = if *call.head.method() == Method::HEAD {
        ResponseBody::Omitted { length: None }
    } else {
        let (bucket, audit) = (Arc::clone(bucket), call.read_audit());
        ResponseBody::Chunked { source: Box::new(Archive::new(engine, bucket, members(), audit, permit)) }
    };
    Ok(Reply { status: StatusCode::OK, headers, body, record: ChangeRecord::default() })
}

/// The objects of an archive that have not had their turn.
enum Members {
    /// Those whose keys begin with a prefix.
    Below {
        prefix: String,
        /// As they were then.
        at: Option<Timestamp>,
        page: std::vec::IntoIter<ListedObject>,
        /// The start of the next page.
        after: Option<ListPosition>,
        is_last_page: bool,
    },
    /// Those with these keys.
    Named(std::vec::IntoIter<ObjectKey>),
}

impl Members {
    fn below(prefix: String, at: Option<Timestamp>) -> Self {
        Self::Below { prefix, at, page: Vec::new().into_iter(), after: None, is_last_page: false }
    }

    /// Returns the next key; its size, if it is known. A list that is read may return nothing and still have more pages.
    async fn next(
        &mut self,
        engine: &Engine,
        bucket: &Arc<Bucket>,
    ) -> Result<Option<(ObjectKey, Option<u64>)>, EngineError> {
        let Self::Below { prefix, at, page, after, is_last_page } = self else {
            let Self::Named(keys) = self else { unreachable!("there is no other kind") };
            return Ok(keys.next().map(|key| (key, None)));
        };
        loop {
            if let Some(ListedObject { key, size, .. }) = page.next() {
                let key = ObjectKey::parse(&key);
                let key = key.map_err(|_| EngineError::Corrupt("a key that is none".to_owned()))?;
                return Ok(Some((key, Some(size))));
            }
            if *is_last_page {
                return Ok(None);
            }
            yield_now().await;
            let (prefix, after_key) = (prefix.as_bytes(), after.take());
            let list = ListObjects { prefix, delimiter: None, after: after_key, max: LIST_ENTRIES_MAX };
            let read = match at {
                None => engine.list_objects(bucket, &list)?,
                Some(at) => engine.list_objects_at(bucket, &list, *at)?,
            };
            (*is_last_page, *after, *page) = (read.next.is_none(), read.next, read.objects.into_iter());
        }
    }

    /// Returns the part of a key that becomes its name: the path below the folder of the prefix.
    fn below_prefix<'k>(&self, key: &'k str) -> &'k str {
        match self {
            Self::Below { prefix, .. } => {
                let folder = prefix.rfind('/').map_or(0, |slash| slash + 1);
                key.get(folder..).unwrap_or(key)
            }
            Self::Named(_) => key,
        }
    }

    fn open(
        &self,
        engine: &Engine,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
    ) -> Result<Option<OpenObject>, EngineError> {
        let at = if let Self::Below { at, .. } = self { *at } else { None };
        let version = at.map(|at| engine.version_at(bucket, key, at)).transpose();
        match version.and_then(|version| engine.open_whole(bucket, key, version)) {
            Ok(object) => Ok(Some(object)),
            // It was deleted since the list was read.
            Err(EngineError::NoSuchKey | EngineError::NoSuchVersion | EngineError::DeleteMarker { .. })
                if matches!(self, Self::Below { .. }) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks that all members exist, and that the archive will not be too large.
///
/// # Errors
/// `OBJECT_NOT_FOUND`, `INVALID_REQUEST`.
async fn check(engine: &Engine, bucket: &Arc<Bucket>, mut members: Members) -> Result<(), AdminError> {
    let (mut names, mut entries, mut bytes) = (ArchiveNames::default(), 0, 0);
    while let Some((key, size)) = members.next(engine, bucket).await? {
        let size = match size {
            Some(size) => size,
            None => engine.head_object(bucket, &key, None).map_err(|error| missing(&key, error))?.size,
        };
        entries += 1;
        if let Some(name) = names.name_of(members.below_prefix(key.as_str()), size) {
            bytes += ZipWriter::directory_bytes(&name);
        }
        if entries > ARCHIVE_ENTRIES_MAX {
            let text = format!(
                "an archive has at most {ARCHIVE_ENTRIES_MAX} objects, and the prefix has more: give a longer one"
            );
            return Err(AdminError::invalid(text));
        }
        if bytes + names.bytes() > ARCHIVE_LIST_BYTES_MAX {
            let text = format!(
                "the names in an archive take at most {ARCHIVE_LIST_BYTES_MAX} bytes, and those of the first \
                 {entries} objects take more: give a longer prefix"
            );
            return Err(AdminError::invalid(text));
        }
        if entries.is_multiple_of(u64_of(LIST_YIELD_ENTRIES)) {
            yield_now().await;
        }
    }
    if entries == 0 {
        return Err(AdminError::ObjectsNotFound("there is no object below this prefix".to_owned()));
    }
    Ok(())
}

fn missing(key: &ObjectKey, error: EngineError) -> AdminError {
    match AdminError::from(error) {
        AdminError::ObjectNotFound => AdminError::ObjectsNotFound(format!("the object {key} does not exist")),
        error => error,
    }
}

/// An archive that is being sent.
struct Archive {
    engine: Rc<Engine>,
    bucket: Arc<Bucket>,
    members: Members,
    names: ArchiveNames,
    zip: ZipWriter,
    /// The object whose content is being sent.
    reading: Option<(ObjectKey, PayloadReader)>,
    /// Headers and small contents that are sent together.
    buffer: Vec<u8>,
    /// A block that is sent after the buffer.
    block: Option<PayloadChunk>,
    /// Whether everything was returned.
    is_over: bool,
    audit: ReadAudit,
    _permit: ArchivePermit,
}

impl Archive {
    fn new(
        engine: Rc<Engine>,
        bucket: Arc<Bucket>,
        members: Members,
        audit: ReadAudit,
        permit: ArchivePermit,
    ) -> Self {
        Self {
            engine,
            bucket,
            members,
            names: ArchiveNames::default(),
            zip: ZipWriter::default(),
            reading: None,
            buffer: Vec::new(),
            block: None,
            is_over: false,
            audit,
            _permit: permit,
        }
    }

    /// Returns the next piece.
    ///
    /// # Errors
    /// The reason why the archive ends early.
    async fn piece(&mut self) -> Result<Option<Chunk>, String> {
        if let Some(block) = self.block.take() {
            return Ok(Some(Box::new(block)));
        }
        while !self.is_over && self.buffer.len() < ARCHIVE_BUFFER_BYTES {
            let Some((key, reader)) = &mut self.reading else {
                self.begin_next().await?;
                continue;
            };
            match reader.next().await.map_err(|error| format!("{key}: {error}"))? {
                Some(chunk) => {
                    let bytes = chunk.as_ref();
                    self.zip.content(bytes);
                    if bytes.len() >= ARCHIVE_BUFFER_BYTES {
                        self.block = Some(chunk);
                        break;
                    }
                    self.buffer.extend_from_slice(bytes);
                }
                None => {
                    self.zip.end(&mut self.buffer);
                    self.reading = None;
                }
            }
        }
        if !self.buffer.is_empty() {
            return Ok(Some(Box::new(std::mem::take(&mut self.buffer))));
        }
        Ok(self.block.take().map(|block| Box::new(block) as Chunk))
    }

    /// Begins the next entry, or ends the archive.
    async fn begin_next(&mut self) -> Result<(), String> {
        let text = |key: &str, error: EngineError| format!("{key}: {error}");
        let next = self.members.next(&self.engine, &self.bucket).await;
        let Some((key, _)) = next.map_err(|error| text("the list", error))? else {
            self.buffer.append(&mut std::mem::take(&mut self.zip).finish());
            self.is_over = true;
            return Ok(());
        };
        if self.zip.entries().is_multiple_of(u64_of(LIST_YIELD_ENTRIES)) {
            // A client that receives fast must not keep other requests waiting.
            yield_now().await;
        }
        let opened = self.members.open(&self.engine, &self.bucket, &key);
        let Some(object) = opened.map_err(|error| text(key.as_str(), error))? else { return Ok(()) };
        let (size, modified) = (object.info.size, object.info.last_modified);
        let Some(name) = self.names.name_of(self.members.below_prefix(key.as_str()), size) else {
            return Ok(());
        };
        let bytes = self.zip.directory_len() + ZipWriter::directory_bytes(&name) + self.names.bytes();
        if self.zip.entries() >= ARCHIVE_ENTRIES_MAX || bytes > ARCHIVE_LIST_BYTES_MAX {
            return Err("too many objects were added while the archive was sent".to_owned());
        }
        self.zip.begin(&mut self.buffer, ZipEntry { name: &name, size, modified });
        self.reading = Some((key, object.read()));
        Ok(())
    }
}

impl BodySource for Archive {
    fn next<'a>(&'a mut self) -> Pin<Box<dyn Future<Output = io::Result<Option<Chunk>>> + 'a>> {
        Box::pin(async {
            self.piece().await.map_err(|cause| {
                self.audit.failed(format!("{cause}; the archive was cut"));
                io::Error::other(cause)
            })
        })
    }
}
