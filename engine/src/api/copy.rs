//! Server-side copies: reads one object and writes its bytes as a new payload.

use crate::api::engine::Engine;
use crate::error::EngineError;
use crate::executor::copy_queue::CopyPermit;
use crate::limits::COPY_YIELD_BYTES;
use crate::read::reader::{OpenObject, PayloadReader};
use crate::slice::staged::StagedPayload;
use crate::types::bucket::Bucket;
use crate::write::writer::TagSource;
use cairn_model::ObjectKey;
use std::rc::Rc;
use std::sync::Arc;

impl Engine {
    /// Copies the bytes that an object was opened for to a payload for another key. Each block is checked. The MD5 of a
    /// whole object that was not uploaded in parts is known and not computed again. Makes room for other requests and
    /// copies. Dropping the future ends the copy.
    ///
    /// # Errors
    /// [`EngineError::PayloadTooLarge`], [`EngineError::StorageFull`], [`EngineError::Corrupt`] and failures of the device.
    pub async fn copy_payload(
        self: &Rc<Self>,
        permit: &mut CopyPermit,
        source: OpenObject,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
    ) -> Result<StagedPayload, EngineError> {
        self.copy_inspected(permit, source, bucket, key, |_| ()).await
    }

    /// As [`Engine::copy_payload`]. Shows all bytes to `inspect`, in order.
    ///
    /// # Errors
    /// Those of [`Engine::copy_payload`].
    pub async fn copy_inspected(
        self: &Rc<Self>,
        permit: &mut CopyPermit,
        source: OpenObject,
        bucket: &Arc<Bucket>,
        key: &ObjectKey,
        mut inspect: impl FnMut(&[u8]),
    ) -> Result<StagedPayload, EngineError> {
        let is_whole = source.range == (0..source.info.size);
        let md5 = Some(source.info.etag).filter(|etag| is_whole && etag.parts == 0);
        let tag = md5.map_or_else(|| self.new_tag(), |etag| Ok(TagSource::Known(etag)))?;
        let size = source.range.end - source.range.start;
        let mut writer = self.begin_payload(bucket, key, size, tag)?;
        let mut reader = source.copying().read();
        let mut moved = 0;
        while let Some(chunk) = reader.next().await? {
            let mut bytes = chunk.as_ref();
            inspect(bytes);
            while !bytes.is_empty() {
                let buffer = writer.buffer().await?;
                let count = buffer.len().min(bytes.len());
                let (now, later) = bytes.split_at(count);
                buffer[..count].copy_from_slice(now);
                writer.advance(count)?;
                bytes = later;
                moved += count;
            }
            // A buffer that is filling is memory that uploads may wait for.
            if moved >= COPY_YIELD_BYTES && !writer.is_filling() {
                make_room(permit, &mut reader, std::mem::take(&mut moved)).await;
            }
        }
        writer.finish().await
    }
}

/// Shows all bytes of an object to `inspect`, in order, in the turns of a copy.
///
/// # Errors
/// Those of the reads.
pub async fn inspect_in_turns(
    permit: &mut CopyPermit,
    source: OpenObject,
    mut inspect: impl FnMut(&[u8]),
) -> Result<(), EngineError> {
    let mut reader = source.copying().read();
    let mut read = 0;
    while let Some(chunk) = reader.next().await? {
        inspect(chunk.as_ref());
        read += chunk.as_ref().len();
        drop(chunk);
        if read >= COPY_YIELD_BYTES {
            make_room(permit, &mut reader, std::mem::take(&mut read)).await;
        }
    }
    Ok(())
}

/// Lets others go on after `moved` bytes. While a copy waits for its next turn, it keeps no blocks that others need memory for.
async fn make_room(permit: &mut CopyPermit, reader: &mut PayloadReader, moved: usize) {
    if permit.is_at_end_of_turn(moved) {
        reader.discard_prefetched();
    }
    permit.make_room(moved).await;
}
