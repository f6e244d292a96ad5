//! Verification: what the device holds is read and held against its checks, version by version.
//!
//! It goes the way of every read ([`PinnedPayload::read_blocks`]), but past the cache, which it neither asks nor fills: a
//! cached block says nothing of the device. It runs behind all requests of its executor, one read at a time, at the pace
//! of `pace.rs`, and pins what it reads, so that no change meanwhile looks like damage. Walks over many versions take
//! their keys from short snapshots and hold none while they read. Dropping the future ends it.
//!
//! Damage is reported here and nowhere else: once for each finding, with bucket, key, version and block.

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::events::{FoundWhile, StoreEvent};
use crate::extent::blocks_for;
use crate::keys;
use crate::limits::{BLOCK_BYTES, CORRUPT_VERSIONS_MAX, FINDINGS_OF_VERSION_MAX, WALK_PAGE_RECORDS};
use crate::list;
use crate::open::Look;
use crate::pace::Pace;
use crate::reader::{PayloadSource, PinnedPayload, Purpose, Source};
use crate::record::ObjectRecord;
use crate::seal::KeyOwner;
use crate::slice::Slice;
use cairn_model::{ObjectKey, VersionId, VersionName};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What verification says of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationStatus {
    /// Record and payload are what was written.
    Ok,
    /// A check does not fit its bytes, or the device fails to read them.
    Corrupt,
    /// The record is right, but a volume does not have the place that it names.
    Missing,
}

/// A version that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedVersion {
    /// The key, as far as its record's key can be read.
    pub key: String,
    /// The version; one whose record cannot be read goes by its id.
    pub version: VersionName,
    /// Bytes of the payload; 0 when the record cannot be read.
    pub size: u64,
    /// The verdict.
    pub status: VerificationStatus,
    /// Blocks that were read; an inline payload counts as one, an empty payload as none.
    pub blocks_checked: u64,
    /// What was found, for people: the places of the damage, `None` when there is none.
    pub detail: Option<String>,
}

/// How far a verification is; shared with whoever wants to know.
#[derive(Debug, Default)]
pub struct VerifyProgress {
    versions: AtomicU64,
    bytes: AtomicU64,
    corrupt: AtomicU64,
}

impl VerifyProgress {
    /// Versions verified.
    #[must_use]
    pub fn versions(&self) -> u64 {
        self.versions.load(Ordering::Relaxed)
    }

    /// Bytes of payloads read from the device.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Versions found corrupt or missing.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.corrupt.load(Ordering::Relaxed)
    }

    fn count(&self, version: &VerifiedVersion) {
        self.versions.fetch_add(1, Ordering::Relaxed);
        if version.status != VerificationStatus::Ok {
            self.corrupt.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A place between two versions in a walk over the store, slice by slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyPosition {
    /// The slice.
    pub slice: u16,
    /// The encoded key of the last version that was verified there; empty: none yet.
    pub after: Vec<u8>,
}

impl VerifyPosition {
    /// In front of everything.
    pub const START: Self = Self { slice: 0, after: Vec::new() };
}

/// What a verification of a bucket found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketVerification {
    /// Versions verified.
    pub versions_verified: u64,
    /// Bytes of payloads read from the device.
    pub bytes_verified: u64,
    /// Versions found corrupt or missing.
    pub corrupt_versions: u64,
    /// The first [`CORRUPT_VERSIONS_MAX`] of them.
    pub corrupt: Vec<VerifiedVersion>,
    /// Where to go on; `None`: every version was verified.
    pub next: Option<VerifyPosition>,
}

impl Engine {
    /// Verifies one version of an object, by default the current one.
    ///
    /// # Errors
    /// [`EngineError::NoSuchKey`] or [`EngineError::NoSuchVersion`], also for a delete marker, and failures that say nothing of
    /// it.
    pub async fn verify_object(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        version: Option<VersionName>,
        progress: &Arc<VerifyProgress>,
    ) -> Result<VerifiedVersion, EngineError> {
        let slice = Arc::clone(self.store().slice_of(bucket, key)?);
        let versions = keys::versions_of(bucket.id, key.as_bytes()).ok_or(EngineError::NoSuchKey)?;
        let missing = if version.is_some() { EngineError::NoSuchVersion } else { EngineError::NoSuchKey };
        let encoded = match version {
            Some(VersionName::Id(id)) => keys::with_sequence(&versions, id.0),
            Some(VersionName::Null) => null_key(&slice, &versions)?,
            None => newest_key(&slice, &versions)?,
        };
        let (engine, name) = (Rc::clone(self), bucket.name.to_string());
        let progress = Arc::clone(progress);
        self.in_background(async move {
            let mut verifier = Verifier::new(engine, progress, None);
            verifier.verify(&slice, &name, &encoded).await?.ok_or(missing)
        })
        .await
    }

    /// Verifies every version in a bucket behind `from`, `versions_max` of them at most.
    ///
    /// # Errors
    /// Failures that say nothing of the stored data.
    pub async fn verify_bucket(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        from: VerifyPosition,
        versions_max: u64,
        progress: &Arc<VerifyProgress>,
    ) -> Result<BucketVerification, EngineError> {
        let (engine, bucket, progress) = (Rc::clone(self), Arc::clone(bucket), Arc::clone(progress));
        self.in_background(async move {
            let bytes_before = progress.bytes();
            let mut walk = Walk::new(Rc::clone(&engine), keys::prefix_of(bucket.id, &[]), from);
            let mut verifier = Verifier::new(engine, Arc::clone(&progress), None);
            let mut found = BucketVerification::default();
            while let Some(met) = walk.next()? {
                // Removed meanwhile: nothing to verify.
                if let Some(verified) = verifier.verify_met(&met, bucket.name.as_str()).await? {
                    found.add(verified);
                }
                if found.versions_verified >= versions_max {
                    found.next = Some(walk.position().clone());
                    break;
                }
            }
            found.bytes_verified = progress.bytes() - bytes_before;
            Ok(found)
        })
        .await
    }
}

impl BucketVerification {
    fn add(&mut self, verified: VerifiedVersion) {
        self.versions_verified += 1;
        if verified.status == VerificationStatus::Ok {
            return;
        }
        self.corrupt_versions += 1;
        if self.corrupt.len() < CORRUPT_VERSIONS_MAX {
            self.corrupt.push(verified);
        }
    }
}

/// Encoded key of the newest version of a key.
fn newest_key(slice: &Slice, versions: &[u8]) -> Result<Vec<u8>, EngineError> {
    let txn = slice.environment.read()?;
    let first = txn.keys(slice.tables.objects, versions)?.next().transpose()?;
    let found = first.filter(|key| key.starts_with(versions));
    found.map(<[u8]>::to_vec).ok_or(EngineError::NoSuchKey)
}

/// Encoded key of the null version of a key.
fn null_key(slice: &Slice, versions: &[u8]) -> Result<Vec<u8>, EngineError> {
    let txn = slice.environment.read()?;
    let sequence = list::null_version(&txn, &slice.tables, versions)?;
    sequence.map(|sequence| keys::with_sequence(versions, sequence)).ok_or(EngineError::NoSuchVersion)
}

/// The record of a version as a walk meets it.
pub(crate) struct Met {
    pub(crate) slice: Arc<Slice>,
    pub(crate) encoded: Vec<u8>,
    /// Whether a look-up finds the key, too. It does not when keys are out of order because a bit of one was turned over.
    pub(crate) is_found: bool,
}

/// Gives the encoded keys of all versions whose keys begin with a prefix, slice by slice, a page from each snapshot.
pub(crate) struct Walk {
    engine: Rc<Engine>,
    prefix: Vec<u8>,
    position: VerifyPosition,
    page: VecDeque<Listed>,
    /// Whether the position is another than when the last page was taken: then there may be more behind it.
    moved: bool,
}

impl Walk {
    pub(crate) const fn new(engine: Rc<Engine>, prefix: Vec<u8>, from: VerifyPosition) -> Self {
        Self { engine, prefix, position: from, page: VecDeque::new(), moved: true }
    }

    /// The place behind what was given last.
    pub(crate) const fn position(&self) -> &VerifyPosition {
        &self.position
    }

    /// The next version; `None` at the end of the last slice.
    pub(crate) fn next(&mut self) -> Result<Option<Met>, EngineError> {
        loop {
            let slices = &self.engine.store().slices;
            let Some(slice) = slices.get(usize::from(self.position.slice)) else { return Ok(None) };
            if let Some(Listed { encoded, is_found }) = self.page.pop_front() {
                // A damaged key that is out of order must lead neither back nor past others.
                if encoded > self.position.after
                    && self.page.front().is_none_or(|next| encoded < next.encoded)
                {
                    self.position.after.clone_from(&encoded);
                    self.moved = true;
                }
                return Ok(Some(Met { slice: Arc::clone(slice), encoded, is_found }));
            }
            if std::mem::take(&mut self.moved) {
                self.page = keys_behind(slice, &self.prefix, &self.position.after)?;
            }
            if self.page.is_empty() {
                self.position = VerifyPosition { slice: self.position.slice + 1, after: Vec::new() };
                self.moved = true;
            }
        }
    }
}

/// A key in a page of a walk; see [`Met`].
struct Listed {
    encoded: Vec<u8>,
    is_found: bool,
}

/// The next keys of a slice behind `after` that begin with `prefix`. The last of them is in order with its neighbours, and
/// a single key that does not begin with the prefix among ones that do is given too: a bit of a key that was turned over
/// must not lead the walk past what follows.
fn keys_behind(slice: &Slice, prefix: &[u8], after: &[u8]) -> Result<VecDeque<Listed>, EngineError> {
    // The least key that is greater than `after`.
    let behind = [after, &[0][..]].concat();
    let from = if after.is_empty() { prefix } else { behind.as_slice() };
    let txn = slice.environment.read()?;
    let mut page = VecDeque::new();
    let mut stray = None;
    for key in txn.keys(slice.tables.objects, from)?.take(WALK_PAGE_RECORDS + 1) {
        let key = key?.to_vec();
        if key.starts_with(prefix) {
            page.extend(stray.take());
            page.push_back(key);
        } else if stray.replace(key).is_some() {
            break;
        }
    }
    if page.len() > WALK_PAGE_RECORDS {
        end_in_order(&mut page);
    }
    // In the same snapshot: what was removed since is no damage.
    let is_found = |key: &[u8]| !matches!(txn.get(slice.tables.objects, key), Ok(None));
    Ok(page.into_iter().map(|encoded| Listed { is_found: is_found(&encoded), encoded }).collect())
}

/// Takes keys off the end until the last one stands between its neighbours in order; at least one is left.
fn end_in_order(page: &mut VecDeque<Vec<u8>>) {
    let mut ahead = page.pop_back();
    while let (Some(last), Some(before)) = (page.back(), page.iter().rev().nth(1)) {
        if before < last && ahead.as_ref().is_none_or(|ahead| last < ahead) {
            return;
        }
        ahead = page.pop_back();
    }
}

/// Verifies versions one after the other at a pace.
pub(crate) struct Verifier {
    engine: Rc<Engine>,
    progress: Arc<VerifyProgress>,
    pace: Pace,
}

impl Verifier {
    pub(crate) fn new(
        engine: Rc<Engine>,
        progress: Arc<VerifyProgress>,
        bytes_per_second: Option<u64>,
    ) -> Self {
        let pace = Pace::new(engine.store(), bytes_per_second);
        Self { engine, progress, pace }
    }

    /// Verifies what a walk met; `None` when it was removed since.
    pub(crate) async fn verify_met(
        &mut self,
        met: &Met,
        bucket: &str,
    ) -> Result<Option<VerifiedVersion>, EngineError> {
        if met.is_found {
            return self.verify(&met.slice, bucket, &met.encoded).await;
        }
        let (key, sequence) = key_and_sequence(&met.encoded);
        let version = VersionName::Id(VersionId(sequence));
        let mut findings = Findings::new(format!("{bucket}/{key}"), version);
        let what = "the record's key is out of order: look-ups do not find it".to_owned();
        findings.add(&self.engine, VerificationStatus::Corrupt, what);
        let (status, detail) = findings.end();
        let verified = VerifiedVersion { key, version, size: 0, status, blocks_checked: 0, detail };
        self.progress.count(&verified);
        Ok(Some(verified))
    }

    /// Verifies the version of an encoded key; `None` when there is none any more.
    pub(crate) async fn verify(
        &mut self,
        slice: &Arc<Slice>,
        bucket: &str,
        encoded: &[u8],
    ) -> Result<Option<VerifiedVersion>, EngineError> {
        let (key, sequence) = key_and_sequence(encoded);
        let decoded = keys::decode(encoded);
        // A data key that was wrapped for another owner does not open: one more way to find a record in a wrong place.
        let (bucket_id, object) = decoded.as_ref().map_or((0, &[][..]), |(id, key, _)| (*id, key.as_slice()));
        let owner = KeyOwner { bucket: bucket_id, object };
        let mut findings = Findings::new(format!("{bucket}/{key}"), VersionName::Id(VersionId(sequence)));
        let mut size = 0;
        let object = || format!("{bucket}/{key}");
        let opened = self.engine.open_found(slice, |removals| {
            let txn = slice.environment.read()?;
            let stored = txn.get(slice.tables.objects, encoded)?.ok_or(EngineError::NoSuchKey)?;
            let record = ObjectRecord::decode(stored.version, stored.body)?;
            if record.is_delete_marker() {
                return Err(EngineError::NoSuchKey);
            }
            let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
            let purpose = Purpose::Verify;
            let look = Look { slice, removals, txn: &txn, versions, owner, object: &object, purpose };
            self.engine.open_record(&look, record, stored.tail, 0..u64::MAX)
        });
        let blocks_checked = match opened {
            Ok(open) => {
                size = open.info.size;
                findings.version = open.info.version_name();
                match open.source {
                    Source::Payload(source) => self.verify_source(&source, &mut findings).await?,
                    Source::Parts(parts) => {
                        let mut blocks = 0;
                        for part in parts.iter() {
                            blocks += self.verify_source(&part.source, &mut findings).await?;
                        }
                        blocks
                    }
                }
            }
            Err(EngineError::NoSuchKey) => return Ok(None),
            Err(EngineError::Corrupt(what)) => {
                findings.add(&self.engine, VerificationStatus::Corrupt, what);
                0
            }
            Err(error) => return Err(error),
        };
        let version = findings.version;
        let (status, detail) = findings.end();
        let verified = VerifiedVersion { key, version, size, status, blocks_checked, detail };
        self.progress.count(&verified);
        Ok(Some(verified))
    }

    /// Reads a payload, or a part; gives the number of its blocks.
    async fn verify_source(
        &mut self,
        source: &PayloadSource,
        findings: &mut Findings,
    ) -> Result<u64, EngineError> {
        match source {
            PayloadSource::Inline(bytes) => {
                // It was checked when it was opened, and rested for with the least that it takes.
                self.progress.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.pace.rest(Instant::now(), bytes.len() as u64).await;
                Ok(u64::from(!bytes.is_empty()))
            }
            PayloadSource::Volume(payload) => self.verify_blocks(payload, findings).await,
        }
    }

    /// Reads every block of a payload; gives their number.
    async fn verify_blocks(
        &mut self,
        payload: &PinnedPayload,
        findings: &mut Findings,
    ) -> Result<u64, EngineError> {
        let blocks = blocks_for(payload.size);
        let mut first = 0;
        while first < blocks {
            let most = self.pace.run_blocks().min(blocks - first);
            let mut count = 1;
            while count < most && payload.follows(first, count) {
                count += 1;
            }
            let begun = Instant::now();
            if payload.read_blocks(first, count, Purpose::Verify).await.is_err() {
                // One by one, to know which.
                for block in first..first + count {
                    self.verify_block(payload, block, findings).await?;
                }
            }
            let end = ((first + count) * BLOCK_BYTES as u64).min(payload.size);
            let bytes = end - first * BLOCK_BYTES as u64;
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.pace.rest(begun, bytes).await;
            first += count;
        }
        Ok(blocks)
    }

    async fn verify_block(
        &self,
        payload: &PinnedPayload,
        block: u64,
        findings: &mut Findings,
    ) -> Result<(), EngineError> {
        match payload.read_blocks(block, 1, Purpose::Verify).await {
            Ok(_) => {}
            Err(EngineError::Corrupt(what)) => {
                findings.add(&self.engine, VerificationStatus::Corrupt, what);
            }
            Err(EngineError::Io(_)) if payload.is_missing(block).await => {
                let what = payload.of_part(&format!("block {block} is missing"));
                findings.add(&self.engine, VerificationStatus::Missing, what);
            }
            Err(EngineError::Io(error)) => {
                let what = payload.of_part(&format!("block {block} cannot be read ({error})"));
                findings.add(&self.engine, VerificationStatus::Corrupt, what);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Key and sequence of an encoded key, for people as far as it cannot be decoded.
fn key_and_sequence(encoded: &[u8]) -> (String, u64) {
    match keys::decode(encoded) {
        Some((_, key, sequence)) => (String::from_utf8_lossy(&key).into_owned(), sequence),
        None => (format!("a key that cannot be decoded: {encoded:02x?}"), 0),
    }
}

/// What was found in one version.
struct Findings {
    /// Bucket and key, for the report.
    object: String,
    version: VersionName,
    status: VerificationStatus,
    texts: Vec<String>,
    more: u64,
    last: String,
}

impl Findings {
    fn new(object: String, version: VersionName) -> Self {
        let (status, texts, last) = (VerificationStatus::Ok, Vec::new(), String::new());
        Self { object, version, status, texts, more: 0, last }
    }

    /// Reports a finding. A page of a check table is found again with each of its blocks, and counts once.
    fn add(&mut self, engine: &Engine, status: VerificationStatus, what: String) {
        if self.last == what {
            return;
        }
        let (object, version, what_found) = (self.object.as_str(), Some(self.version), what.as_str());
        let found_while = FoundWhile::Verifying;
        engine.store().events.report(&StoreEvent::Damage { object, version, what: what_found, found_while });
        // Damage is worse than absence: what is corrupt may still look whole to someone.
        if self.status != VerificationStatus::Corrupt {
            self.status = status;
        }
        self.last.clone_from(&what);
        if self.texts.len() < FINDINGS_OF_VERSION_MAX {
            self.texts.push(what);
        } else {
            self.more += 1;
        }
    }

    fn end(self) -> (VerificationStatus, Option<String>) {
        if self.texts.is_empty() {
            return (self.status, None);
        }
        let mut detail = self.texts.join(", ");
        if self.more > 0 {
            detail.push_str(&format!(" and {} more", self.more));
        }
        (self.status, Some(detail))
    }
}

#[cfg(test)]
mod tests {
    use super::end_in_order;

    #[test]
    fn a_page_does_not_end_with_a_key_that_is_out_of_order() {
        let ended = |keys: &[u8]| {
            let mut page = keys.iter().map(|key| vec![*key]).collect();
            end_in_order(&mut page);
            page.iter().map(|key| key[0]).collect::<Vec<_>>()
        };
        assert_eq!(ended(&[1, 2, 3, 4]), [1, 2, 3], "the one ahead is for the next page");
        assert_eq!(ended(&[1, 2, 3, 200, 5]), [1, 2, 3], "too large: what follows would be passed over");
        assert_eq!(ended(&[1, 2, 3, 0, 5]), [1, 2], "too small: the walk would go back");
        assert_eq!(ended(&[9, 8, 7]), [9]);
    }
}
