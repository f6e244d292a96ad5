//! Searches: the objects of a bucket that fulfil conditions.

use crate::api::engine::Engine;
use crate::check::throttle::Throttle;
use crate::error::EngineError;
use crate::format::object_record::{ObjectRecord, RecordHead};
use crate::list::walk::ObjectWalk;
use crate::store::Store;
use crate::types::bucket::Bucket;
use crate::types::object::ObjectInfo;
use crate::types::search::{FindObjects, FoundObjects};
use cairn_lmdb::Record;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

impl Engine {
    /// Searches a bucket, with lower priority than all requests. The result ends early when the bounds are reached.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when a record fails its check, and failures of the device.
    pub async fn find_objects(
        self: &Rc<Self>,
        bucket: &Arc<Bucket>,
        find: FindObjects,
    ) -> Result<FoundObjects, EngineError> {
        let (store, id) = (Arc::clone(self.store()), bucket.id);
        let found = self.in_background(async move { search(&store, id, &find).await }).await;
        self.context.report_damage(found, || bucket.name.to_string())
    }
}

async fn search(store: &Store, bucket: u64, find: &FindObjects) -> Result<FoundObjects, EngineError> {
    let begun = Instant::now();
    let throttle = Throttle::at_pace(&store.background.on_demand);
    let (prefix, after) = (find.prefix.clone(), find.after.clone());
    let mut walk = ObjectWalk { bucket, prefix, at: find.at, after, examined: 0 };
    let mut found = FoundObjects::default();
    let mut has_more = find.max > 0;
    while has_more {
        let read = throttle.begin().await;
        has_more = walk.step(&store.slices, find.bounds.keys, |key, head, record| {
            if let Some(object) = find.select(key, head, record)? {
                found.objects.push(object);
            }
            let is_full = found.objects.len() >= find.max;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        read.end(0).await;
        let is_over = walk.examined >= find.bounds.keys || begun.elapsed() >= find.bounds.time;
        if has_more && (is_over || found.objects.len() >= find.max) {
            found.next = walk.after.clone();
            break;
        }
    }
    found.examined = walk.examined;
    Ok(found)
}

impl FindObjects {
    /// Returns an object that fulfils the conditions. The cheap ones are checked first.
    fn select(
        &self,
        key: &str,
        head: &RecordHead,
        record: Record<'_>,
    ) -> Result<Option<(String, ObjectInfo)>, EngineError> {
        let is_selected = (self.bytes_min..=self.bytes_max).contains(&head.size)
            && self.modified.contains(&head.last_modified)
            && self.key.as_ref().is_none_or(|filter| filter.matches(key));
        if !is_selected {
            return Ok(None);
        }
        let info = ObjectRecord::decode(record.version, record.body)?.info;
        let is_found = self.attributes.as_ref().is_none_or(|filter| filter(&info.attributes));
        Ok(is_found.then(|| (key.to_owned(), info)))
    }
}
