//! Counts objects and bytes below a prefix and in its folders.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::list::merge::common_prefix;
use crate::list::walk::ObjectWalk;
use crate::store::Store;
use crate::types::bucket::Bucket;
use crate::types::search::{CountFolders, Folder, FolderUsage};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

const DELIMITER: &[u8] = b"/";

impl Engine {
    /// Counts the current objects below a prefix, with lower priority than all requests. Of the folders one level below it,
    /// those with the most bytes are returned. The result ends early when the bounds are reached. The sum of all parts is that
    /// of one count: a folder that continues in the next part is never left out.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check, and failures of the device.
    pub async fn folder_usage(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        count: CountFolders,
    ) -> Result<FolderUsage, EngineError> {
        let (store, id) = (Arc::clone(self.store()), bucket.id);
        let counted = self.in_background(async move { count_folders(&store, id, count).await }).await;
        self.context.report_damage(counted, || bucket.name.to_string())
    }
}

async fn count_folders(store: &Store, bucket: u64, count: CountFolders) -> Result<FolderUsage, EngineError> {
    let begun = Instant::now();
    let throttle = Throttle::at_pace(&store.background.on_demand);
    let CountFolders { prefix, after, folders_max, bounds } = count;
    let mut folders = Folders::new(folders_max, after.is_some());
    let mut walk = ObjectWalk { bucket, prefix: prefix.clone(), at: None, after, examined: 0 };
    let (mut objects, mut bytes, mut has_more) = (0, 0_u64, true);
    while has_more {
        let read = throttle.begin().await;
        has_more = walk.step(&store.slices, bounds.keys, |key, head, _| {
            objects += 1;
            bytes = bytes.saturating_add(head.size);
            if let Some(common) = common_prefix(key.as_bytes(), &prefix, Some(DELIMITER)) {
                folders.add(key.get(..common.len()).unwrap_or_default(), head.size);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        read.end(0).await;
        if has_more && (walk.examined >= bounds.keys || begun.elapsed() >= bounds.time) {
            break;
        }
    }
    let next = walk.after.filter(|_| has_more);
    let (folders, left_out) = folders.in_order(next.is_some());
    Ok(FolderUsage { folders, left_out, objects, bytes, next })
}

/// The folders with the most bytes, and those at the ends of a part of a count.
struct Folders {
    max: usize,
    /// Bytes, objects and prefix, the smallest on top.
    largest: BinaryHeap<Reverse<(u64, u64, String)>>,
    left_out: u64,
    /// The folder of the last key: the keys of a folder are adjacent.
    current: Option<Folder>,
    /// Whether an earlier part may have counted keys of `current`.
    is_continued: bool,
    /// Folders that other parts may have too. They are returned whatever their size.
    ends: Vec<Folder>,
}

impl Folders {
    const fn new(max: usize, is_continued: bool) -> Self {
        Self { max, largest: BinaryHeap::new(), left_out: 0, current: None, is_continued, ends: Vec::new() }
    }

    fn add(&mut self, prefix: &str, size: u64) {
        if self.current.as_ref().is_none_or(|folder| folder.prefix != prefix) {
            self.close(false);
            self.current = Some(Folder { prefix: prefix.to_owned(), objects: 0, bytes: 0 });
        }
        if let Some(folder) = &mut self.current {
            folder.objects += 1;
            folder.bytes = folder.bytes.saturating_add(size);
        }
    }

    /// Ends the current folder. `continues` says that the next part may count more of it.
    fn close(&mut self, continues: bool) {
        let Some(folder) = self.current.take() else { return };
        if std::mem::take(&mut self.is_continued) || continues {
            self.ends.push(folder);
            return;
        }
        let Folder { prefix, objects, bytes } = folder;
        self.largest.push(Reverse((bytes, objects, prefix)));
        if self.largest.len() > self.max {
            self.largest.pop();
            self.left_out += 1;
        }
    }

    /// Returns the folders by their prefixes, and how many were left out.
    fn in_order(mut self, continues: bool) -> (Vec<Folder>, u64) {
        self.close(continues);
        let folder = |Reverse((bytes, objects, prefix))| Folder { prefix, objects, bytes };
        let mut folders: Vec<Folder> = self.largest.into_iter().map(folder).chain(self.ends).collect();
        folders.sort_by(|one, other| one.prefix.cmp(&other.prefix));
        (folders, self.left_out)
    }
}
