//! Verifies single versions: reads all blocks from the device and reports damage.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::check::version_walk::WalkedVersion;
use crate::error::EngineError;
use crate::fault_reports::{FoundWhile, StoreFault};
use crate::format::extent::blocks_for;
use crate::format::keys;
use crate::format::object_record::ObjectRecord;
use crate::format::seal::KeyOwner;
use crate::limits::{BLOCK_BYTES, FINDINGS_OF_VERSION_MAX};
use crate::read::open::{OpenTarget, ReadSnapshot, repeat_until_pinned};
use crate::read::pinned_payload::{PinnedPayload, ReadMode};
use crate::read::reader::{Source, StoredPayload};
use crate::slice::Slice;
use crate::store::verify_progress::{VerificationStatus, VerifyProgress};
use cairn_model::{VersionId, VersionName};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A version that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedVersion {
    /// The object key, as far as the record's key can be decoded.
    pub key: String,
    /// The version. If its record cannot be read, this is the id from its key.
    pub version: VersionName,
    /// Size of the payload in bytes; 0 when the record cannot be read.
    pub size: u64,
    /// The result.
    pub status: VerificationStatus,
    /// Number of blocks read. An inline payload counts as one, an empty payload as none.
    pub blocks_checked: u64,
    /// Description of the damage; `None` when there is none.
    pub detail: Option<String>,
}

/// Verifies versions one after the other, throttled.
pub(crate) struct Verifier {
    engine: Rc<Engine>,
    progress: Arc<VerifyProgress>,
    throttle: Throttle,
}

impl Verifier {
    pub(crate) const fn new(engine: Rc<Engine>, progress: Arc<VerifyProgress>, throttle: Throttle) -> Self {
        Self { engine, progress, throttle }
    }

    /// Begins a run that a client has asked for: it rests for earlier ones, and for itself, even if it finds nothing to read.
    pub(crate) async fn on_demand(engine: Rc<Engine>, progress: Arc<VerifyProgress>) -> Self {
        let throttle = Throttle::at_pace(&engine.store().background.on_demand);
        throttle.begin().await.end(0).await;
        Self::new(engine, progress, throttle)
    }

    /// Verifies a version that a walk found; `None` when it was removed in the meantime.
    pub(crate) async fn verify_walked(
        &self,
        walked: &WalkedVersion,
        bucket: &str,
    ) -> Result<Option<VerifiedVersion>, EngineError> {
        if walked.is_found {
            return self.verify(&walked.slice, bucket, &walked.encoded).await;
        }
        let (key, sequence) = key_and_sequence(&walked.encoded);
        let version = VersionName::Id(VersionId(sequence));
        let mut findings = Findings::new(format!("{bucket}/{key}"), version);
        let what = "the record's key is out of order: lookups do not find it".to_owned();
        findings.add(&self.engine, VerificationStatus::Corrupt, what);
        let (status, detail) = findings.end();
        let verified = VerifiedVersion { key, version, size: 0, status, blocks_checked: 0, detail };
        self.progress.count(verified.status);
        Ok(Some(verified))
    }

    /// Verifies the version with an encoded key; `None` when it does not exist any more.
    pub(crate) async fn verify(
        &self,
        slice: &Arc<Slice>,
        bucket: &str,
        encoded: &[u8],
    ) -> Result<Option<VerifiedVersion>, EngineError> {
        let (key, sequence) = key_and_sequence(encoded);
        let decoded = keys::decode(encoded);
        // A data key that was wrapped for another object cannot be unwrapped. This also detects misplaced records.
        let (bucket_id, object) = decoded.as_ref().map_or((0, &[][..]), |(id, key, _)| (*id, key.as_slice()));
        let owner = KeyOwner { bucket: bucket_id, object };
        let mut findings = Findings::new(format!("{bucket}/{key}"), VersionName::Id(VersionId(sequence)));
        let mut size = 0;
        let object = || format!("{bucket}/{key}");
        let opened = repeat_until_pinned(|| {
            let snapshot = ReadSnapshot::begin(slice)?;
            let stored = snapshot.txn.get(slice.tables.objects, encoded)?.ok_or(EngineError::NoSuchKey)?;
            let record = ObjectRecord::decode(stored.version, stored.body)?;
            if record.is_delete_marker() {
                return Err(EngineError::NoSuchKey);
            }
            let versions = encoded.get(..keys::shared_length(encoded)).unwrap_or_default();
            let (object, mode) = (&object, ReadMode::Verify);
            let target = OpenTarget { snapshot: &snapshot, versions, owner, object, mode };
            self.engine.opener.open(&target, record, stored.tail, 0..u64::MAX)
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
        self.progress.count(verified.status);
        Ok(Some(verified))
    }

    /// Verifies the payload of an object or a part; returns the number of its blocks.
    async fn verify_source(
        &self,
        source: &StoredPayload,
        findings: &mut Findings,
    ) -> Result<u64, EngineError> {
        match source {
            StoredPayload::Inline(bytes) => {
                // The payload was already checked when it was opened.
                self.progress.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.throttle.begin().await.end(bytes.len() as u64).await;
                Ok(u64::from(!bytes.is_empty()))
            }
            StoredPayload::Volume(payload) => self.verify_blocks(payload, findings).await,
        }
    }

    /// Reads all blocks of a payload; returns their number.
    async fn verify_blocks(
        &self,
        payload: &PinnedPayload,
        findings: &mut Findings,
    ) -> Result<u64, EngineError> {
        let blocks = blocks_for(payload.size);
        let mut first = 0;
        while first < blocks {
            let read = self.throttle.begin().await;
            let most = self.throttle.run_blocks().min(blocks - first);
            let mut count = 1;
            while count < most && payload.is_contiguous(first, count) {
                count += 1;
            }
            if payload.read_blocks(first, count, ReadMode::Verify).await.is_err() {
                // Repeat block by block to find out which ones are damaged.
                for block in first..first + count {
                    self.verify_block(payload, block, findings).await?;
                }
            }
            let end = ((first + count) * BLOCK_BYTES as u64).min(payload.size);
            let bytes = end - first * BLOCK_BYTES as u64;
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            read.end(bytes).await;
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
        match payload.read_blocks(block, 1, ReadMode::Verify).await {
            Ok(_) => {}
            Err(EngineError::Corrupt(what)) => {
                findings.add(&self.engine, VerificationStatus::Corrupt, what);
            }
            Err(EngineError::Io(_)) if payload.is_missing(block).await => {
                let what = payload.with_part_number(&format!("block {block} is missing"));
                findings.add(&self.engine, VerificationStatus::Missing, what);
            }
            Err(EngineError::Io(error)) => {
                let what = payload.with_part_number(&format!("block {block} cannot be read ({error})"));
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

/// The findings in one version.
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
        engine.store().fault_reports.report(&StoreFault::Damage {
            object,
            version,
            what: what_found,
            found_while,
        });
        // Corruption is reported in preference to absence, because a corrupt block can be mistaken for a good one.
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
