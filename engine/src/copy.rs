//! Copies inside the engine: the bytes of one object become the payload of another without leaving the executor.

use crate::bucket::Bucket;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::limits::COPY_TURN_BYTES;
use crate::reader::OpenObject;
use crate::writer::StagedPayload;
use cairn_model::ObjectKey;
use futures_lite::future::yield_now;
use std::rc::Rc;
use std::sync::Arc;

impl Engine {
    /// Copies the bytes that an object was opened for, checked block by block, to a payload for another key. The MD5 of a
    /// whole object that was put in one piece is not computed again. Other requests go on meanwhile.
    ///
    /// # Errors
    /// [`EngineError::PayloadTooLarge`], [`EngineError::StorageFull`], [`EngineError::Corrupt`] and failures of the device.
    pub async fn copy_payload(
        self: &Rc<Self>,
        source: OpenObject,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
    ) -> Result<StagedPayload, EngineError> {
        let is_whole = source.range == (0..source.info.size);
        let md5 = Some(source.info.etag).filter(|etag| is_whole && etag.parts == 0).map(|etag| etag.md5);
        let size = source.range.end - source.range.start;
        let mut writer = self.begin_payload(bucket, key, size, md5)?;
        let mut reader = source.copying().read();
        let mut in_turn = 0;
        while let Some(chunk) = reader.next().await? {
            let mut bytes = chunk.as_ref();
            while !bytes.is_empty() {
                let buffer = writer.buffer().await?;
                let count = buffer.len().min(bytes.len());
                let (now, later) = bytes.split_at(count);
                buffer.get_mut(..count).unwrap_or_default().copy_from_slice(now);
                writer.advance(count)?;
                bytes = later;
                in_turn += count;
            }
            if in_turn >= COPY_TURN_BYTES {
                in_turn = 0;
                yield_now().await;
            }
        }
        writer.finish().await
    }
}
