//! (interface sketch; the crate's author replaces the bodies, the signatures stay)
use std::{path::PathBuf, rc::Rc, sync::Arc, ops::Range};
use cairn_model::{BucketName, ObjectKey, Etag, Timestamp, Clock, VersionId};

pub struct StoreOptions { pub data_dir: PathBuf, /// slices of a new store; None: the host's cores, at least 2, at most 64
    pub slices: Option<u16>, pub master_key: Vec<u8>, pub cache_bytes: u64, /// below this many free bytes new writes are refused
    pub reserve_bytes: u64, pub clock: Arc<dyn Clock> }
/// The store, shared by all threads.
pub struct Store {}
pub struct Bucket { pub name: BucketName, pub created_at: Timestamp }
pub struct Usage { pub objects: u64, pub bytes: u64 }
impl Bucket { pub fn usage(&self) -> Usage { todo!() } }
impl Store {
    /// Opens or makes the store; blocks; call before executors start.
    pub fn open(_options: StoreOptions) -> Result<Arc<Self>, OpenError> { todo!() }
    /// Commits what waits and ends the committer threads; blocks.
    pub fn close(&self) { }
    pub fn bucket(&self, _name: &BucketName) -> Option<Arc<Bucket>> { todo!() }
    /// All buckets in order of name.
    pub fn buckets(&self) -> Vec<Arc<Bucket>> { todo!() }
    pub async fn create_bucket(&self, _name: &BucketName) -> Result<Arc<Bucket>, EngineError> { todo!() }
    pub async fn delete_bucket(&self, _name: &BucketName) -> Result<(), EngineError> { todo!() }
    /// Whether payload storage and metadata can serve; the text says what is wrong.
    pub fn storage_health(&self) -> Result<(), String> { todo!() }
    pub fn metadata_health(&self) -> Result<(), String> { todo!() }
}
/// Why a store did not open; `Display` says what to do about it.
#[derive(Debug)] pub struct OpenError;
impl std::fmt::Display for OpenError { fn fmt(&self, _f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { Ok(()) } }
impl std::error::Error for OpenError {}

#[derive(Debug, Clone)] pub enum EngineError {
    NoSuchBucket, BucketAlreadyExists, BucketNotEmpty,
    /// the bucket is being deleted, or a concurrent change decided otherwise
    Conflict, NoSuchKey, PreconditionFailed,
    /// the key's encoded form does not fit a metadata key
    KeyTooLong, StorageFull, /// a record or block failed its check; already logged
    Corrupt, /// device error; already logged
    Io(String), ShuttingDown }

/// The engine on one executor (not Send): open volume files, read and write paths.
pub struct Engine {}
/// Stored headers and metadata of an object. Names lower-case.
#[derive(Clone, Debug, Default, PartialEq, Eq)] pub struct Attributes {
    /// content-type, cache-control, content-disposition, content-encoding, content-language, expires, as sent; x-amz-meta-* with full name
    pub headers: Vec<(String, Vec<u8>)>,
    /// checksums that the client declared and that were checked: algorithm and raw digest bytes
    pub checksums: Vec<(ChecksumAlgorithm, Vec<u8>)> }
#[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum ChecksumAlgorithm { Crc32, Crc32c, Crc64Nvme, Sha1, Sha256 }
#[derive(Clone, Debug)] pub struct ObjectInfo { pub size: u64, pub etag: Etag, pub last_modified: Timestamp, pub version: VersionId, pub attributes: Attributes }
/// Conditions of RFC 9110 on the current object, decided inside the commit.
#[derive(Clone, Debug, Default)] pub struct WriteCondition { /// `If-None-Match: *`
    pub must_be_absent: bool, /// `If-Match`: `Some` of the tags (without quotes), `*` as its own variant
    pub if_match: Option<EtagMatch>, pub if_size: Option<u64>, pub if_last_modified_seconds: Option<u64> }
#[derive(Clone, Debug)] pub enum EtagMatch { Any, OneOf(Vec<String>) }

impl Engine {
    pub async fn open(_store: Arc<Store>) -> Result<Rc<Self>, OpenError> { todo!() }
    pub fn store(&self) -> &Arc<Store> { todo!() }
    /// Starts a payload of exactly `size` bytes. Its space is given back when the writer or what it staged is dropped uncommitted.
    pub async fn write_payload(&self, _bucket: &Arc<Bucket>, _key: &ObjectKey, _size: u64) -> Result<PayloadWriter, EngineError> { todo!() }
    /// Commits a staged payload as the object's new content; returns once it is durable.
    pub async fn put_object(&self, _put: PutObject) -> Result<PutOutcome, EngineError> { todo!() }
    pub async fn delete_object(&self, _bucket: &Arc<Bucket>, _key: &ObjectKey, _condition: WriteCondition) -> Result<DeleteOutcome, EngineError> { todo!() }
    /// Metadata of the current object; on the executor, no I/O but the mapped file.
    pub fn head_object(&self, _bucket: &Arc<Bucket>, _key: &ObjectKey) -> Result<ObjectInfo, EngineError> { todo!() }
    /// Opens the current object for reading and pins its payload until the value is dropped.
    pub fn open_object(&self, _bucket: &Arc<Bucket>, _key: &ObjectKey) -> Result<OpenObject, EngineError> { todo!() }
    pub fn list_objects(&self, _bucket: &Arc<Bucket>, _list: &ListObjects<'_>) -> Result<ListPage, EngineError> { todo!() }
}
pub struct PayloadWriter {}
impl PayloadWriter {
    /// Room for the next bytes of the payload; waits for earlier writes when too many are in flight. Never empty while bytes are missing.
    pub async fn buffer(&mut self) -> Result<&mut [u8], EngineError> { todo!() }
    /// Says that `count` bytes of the buffer just given have been filled.
    pub fn advance(&mut self, _count: usize) -> Result<(), EngineError> { todo!() }
    /// Waits for all writes. The payload must be complete.
    pub async fn finish(self) -> Result<StagedPayload, EngineError> { todo!() }
}
pub struct StagedPayload {}
pub struct PutObject { pub bucket: Arc<Bucket>, pub key: ObjectKey, pub payload: StagedPayload, pub etag: Etag, pub attributes: Attributes, pub condition: WriteCondition }
pub struct PutOutcome { pub version: VersionId, pub last_modified: Timestamp, pub replaced: bool }
pub struct DeleteOutcome { pub existed: bool }
pub struct OpenObject { pub info: ObjectInfo }
impl OpenObject { /// Reads the bytes of `range` (within the size), checked block by block, next blocks read ahead.
    pub fn read(self, _range: Range<u64>) -> PayloadReader { todo!() } }
pub struct PayloadReader {}
impl PayloadReader { /// The next piece in order; None at the end. An error before the first piece can still be answered with a 500.
    pub async fn next(&mut self) -> Result<Option<PayloadChunk>, EngineError> { todo!() } }
pub struct PayloadChunk {}
impl AsRef<[u8]> for PayloadChunk { fn as_ref(&self) -> &[u8] { todo!() } }
pub struct ListObjects<'a> { pub prefix: &'a [u8], pub delimiter: Option<&'a [u8]>, /// exclusive: keys (and common prefixes) after this; from start-after or a token
    pub after: Option<ListPosition>, pub max: usize }
/// Where a list goes on; the s3 crate makes an opaque token of it.
#[derive(Clone, Debug, PartialEq, Eq)] pub enum ListPosition { AfterKey(Vec<u8>), AfterPrefix(Vec<u8>) }
pub struct ListPage { pub objects: Vec<ListedObject>, pub common_prefixes: Vec<Vec<u8>>, /// Some: truncated
    pub next: Option<ListPosition> }
pub struct ListedObject { pub key: String, pub size: u64, pub etag: Etag, pub last_modified: Timestamp, pub version: VersionId, pub checksum_algorithms: Vec<ChecksumAlgorithm> }
