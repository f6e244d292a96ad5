//! Deletes many objects or versions of a bucket with few requests.

use cairn_api::{DeleteObjects, DeletedObjects, NamedVersion};

use super::parallel::Batch;
use super::resources::BUCKETS;
use crate::client::{Client, Request, read};
use crate::failure::Failure;
use crate::output::progress::Progress;

/// Most objects of a request (management API, `POST …/delete`).
const OBJECTS_MAX: usize = 1000;
/// Most bytes of keys in a request. The body of a request has at most 1 MiB, and a byte takes up to six there.
const KEY_BYTES_MAX: usize = 100 * 1024;

/// Deletes objects and versions, and counts them in `batch`. What does not exist any more is not counted. Returns how many were
/// deleted.
///
/// # Errors
/// Refusals of the whole request, and a server that does not respond. That one object is refused is counted and shown.
pub(super) fn delete_all(
    client: &Client,
    bucket: &str,
    objects: Vec<NamedVersion>,
    batch: &mut Batch,
    progress: &Progress,
) -> Result<u64, Failure> {
    let before = batch.done;
    let mut waiting = objects.into_iter().peekable();
    while waiting.peek().is_some() {
        let (mut bytes, mut objects) = (0, Vec::new());
        while let Some(next) = waiting.next_if(|next| {
            bytes += next.key.len();
            objects.is_empty() || (objects.len() < OBJECTS_MAX && bytes <= KEY_BYTES_MAX)
        }) {
            objects.push(next);
        }
        let body = DeleteObjects { objects };
        let path = BUCKETS.path_of(bucket) + "/delete";
        let done: DeletedObjects = read(&client.call(&Request::post(path).json(&body).long_running())?)?;
        batch.done += done.deleted;
        for failed in done.failed {
            let object = usize::try_from(failed.index).ok().and_then(|index| body.objects.get(index));
            let name = object.map_or_else(String::new, |object| match &object.version_id {
                Some(version) => format!("{bucket}/{}, {version}", object.key),
                None => format!("{bucket}/{}", object.key),
            });
            batch.refuse(&name, &Failure::Failed(format!("{}: {}", failed.code, failed.message)));
        }
        progress.add(body.objects.len() as u64);
    }
    Ok(batch.done - before)
}
