//! `GET /api/v1/buckets/{bucket}/multipart-uploads`: pages of unfinished multipart uploads, in key order.

use cairn_api::{Upload, UploadPage};
use cairn_engine::{ListUploads, ListedUpload, UploadPosition};
use cairn_model::{UploadId, u64_of, usize_of};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::LIST_ENTRIES_MAX;
use crate::reply::Reply;
use crate::request::query::Parameters;

fn upload_body(upload: ListedUpload) -> Upload {
    let ListedUpload { key, id, initiated, .. } = upload;
    Upload { key: key.into(), upload_id: id.to_string().into(), initiated_at: initiated.into() }
}

pub(crate) async fn list_uploads(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = &call.parameters;
    let limit = query.number("limit", 1..=u64_of(LIST_ENTRIES_MAX))?;
    let list = ListUploads {
        prefix: query.text("prefix").unwrap_or_default().as_bytes(),
        delimiter: None,
        after: position(query)?,
        max: limit.map_or(LIST_ENTRIES_MAX, usize_of),
    };
    let page = call.engine()?.list_uploads(&bucket, &list)?;
    let text = |key: Vec<u8>| Some(String::from_utf8_lossy(&key).into_owned());
    let (next_key_marker, next_upload_id_marker) = match page.next {
        None => (None, None),
        Some(UploadPosition::AfterUpload(key, id)) => (text(key), Some(id.to_string())),
        Some(UploadPosition::AfterKey(key) | UploadPosition::AfterPrefix(key)) => (text(key), None),
    };
    let multipart_uploads = page.uploads.into_iter().map(upload_body).collect();
    Reply::json(StatusCode::OK, &UploadPage { multipart_uploads, next_key_marker, next_upload_id_marker })
}

/// Returns the position after which the page begins: an upload, or all uploads of a key.
fn position(query: &Parameters) -> Result<Option<UploadPosition>, AdminError> {
    let key = query.text("key_marker").filter(|key| !key.is_empty()).map(|key| key.as_bytes().to_vec());
    match (key, query.text("upload_id_marker")) {
        (None, None) => Ok(None),
        (Some(key), None) => Ok(Some(UploadPosition::AfterKey(key))),
        (None, Some(_)) => Err(AdminError::invalid("upload_id_marker needs a key_marker")),
        (Some(key), Some(text)) => {
            let id = UploadId::parse(text)
                .ok_or_else(|| AdminError::invalid("upload_id_marker is not a valid upload id"))?;
            Ok(Some(UploadPosition::AfterUpload(key, id)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::position;
    use crate::routes::query_of;
    use cairn_engine::UploadPosition;
    use cairn_model::UploadId;

    #[test]
    fn markers_are_a_key_or_a_key_with_upload() {
        let read = |query| position(&query_of("list_multipart_uploads", query).expect("declared"));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("key_marker=a"), Ok(Some(UploadPosition::AfterKey(b"a".to_vec()))));
        let upload = UploadPosition::AfterUpload(b"a".to_vec(), UploadId(10));
        assert_eq!(read("key_marker=a&upload_id_marker=000000000000000a"), Ok(Some(upload)));
        for wrong in ["upload_id_marker=000000000000000a", "key_marker=a&upload_id_marker=x"] {
            assert_eq!(read(wrong).map_err(|error| error.code()), Err("INVALID_REQUEST"), "{wrong}");
        }
    }
}
