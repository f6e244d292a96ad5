//! Counts objects and bytes below a prefix and in its folders.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::list::merge::common_prefix;
use crate::list::walk::ObjectWalk;
use crate::store::Store;
use crate::types::bucket::Bucket;
use crate::types::search::{Folder, FolderUsage, SearchBounds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

const DELIMITER: &[u8] = b"/";

impl Engine {
    /// Counts the current objects below a prefix, with lower priority than all requests. Of the folders one level below it, those
    /// with the most bytes are returned, at most `folders_max`. The count ends early when the bounds are reached.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check, and failures of the device.
    pub async fn folder_usage(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        prefix: Vec<u8>,
        folders_max: usize,
        bounds: SearchBounds,
    ) -> Result<FolderUsage, EngineError> {
        let (store, id) = (Arc::clone(self.store()), bucket.id);
        let work = async move { count(&store, id, prefix, Largest::new(folders_max), bounds).await };
        let counted = self.in_background(work).await;
        self.context.report_damage(counted, || bucket.name.to_string())
    }
}

async fn count(
    store: &Store,
    bucket: u64,
    prefix: Vec<u8>,
    mut largest: Largest,
    bounds: SearchBounds,
) -> Result<FolderUsage, EngineError> {
    let begun = Instant::now();
    let throttle = Throttle::at_pace(&store.background.on_demand);
    let mut walk = ObjectWalk { bucket, prefix: prefix.clone(), at: None, after: None, examined: 0 };
    let (mut objects, mut bytes, mut has_more) = (0, 0_u64, true);
    // The folder of the last key: the keys of a folder are adjacent.
    let mut current = None::<Folder>;
    while has_more {
        let read = throttle.begin().await;
        has_more = walk.step(&store.slices, bounds.keys, |key, head, _| {
            objects += 1;
            bytes = bytes.saturating_add(head.size);
            if let Some(common) = common_prefix(key.as_bytes(), &prefix, Some(DELIMITER)) {
                if current.as_ref().is_none_or(|folder| folder.prefix.as_bytes() != common) {
                    let prefix = key.get(..common.len()).unwrap_or_default().to_owned();
                    largest.extend(current.replace(Folder { prefix, objects: 0, bytes: 0 }));
                }
                if let Some(folder) = &mut current {
                    folder.objects += 1;
                    folder.bytes = folder.bytes.saturating_add(head.size);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        read.end(0).await;
        if has_more && (walk.examined >= bounds.keys || begun.elapsed() >= bounds.time) {
            break;
        }
    }
    largest.extend(current);
    let is_complete = !has_more && !largest.is_missing_some;
    Ok(FolderUsage { folders: largest.in_order(), objects, bytes, is_complete })
}

/// The folders with the most bytes.
struct Largest {
    max: usize,
    /// Bytes, objects and prefix, the smallest on top.
    folders: BinaryHeap<Reverse<(u64, u64, String)>>,
    /// Whether there were more than `max`.
    is_missing_some: bool,
}

impl Largest {
    const fn new(max: usize) -> Self {
        Self { max, folders: BinaryHeap::new(), is_missing_some: false }
    }

    fn extend(&mut self, folder: Option<Folder>) {
        let Some(Folder { prefix, objects, bytes }) = folder else { return };
        self.folders.push(Reverse((bytes, objects, prefix)));
        if self.folders.len() > self.max {
            self.folders.pop();
            self.is_missing_some = true;
        }
    }

    fn in_order(self) -> Vec<Folder> {
        let folder = |Reverse((bytes, objects, prefix))| Folder { prefix, objects, bytes };
        let mut folders: Vec<Folder> = self.folders.into_iter().map(folder).collect();
        folders.sort_by(|one, other| one.prefix.cmp(&other.prefix));
        folders
    }
}
