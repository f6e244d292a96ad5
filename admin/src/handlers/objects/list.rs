//! `GET /api/v1/buckets/{bucket}/objects`: pages of current objects in key order.

use cairn_api::ObjectPage;
use cairn_engine::{EngineError, ListObjects};
use cairn_model::{ObjectKey, u64_of, usize_of};
use cairn_transfer::list_token;
use futures_lite::future::yield_now;
use http::StatusCode;

use super::record::object_entry;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{LIST_ENTRIES_MAX, LIST_YIELD_ENTRIES};
use crate::reply::Reply;

pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = call.parameters(&["prefix", "delimiter", "limit", "continuation_token"])?;
    let limit = query.number("limit", 1..=u64_of(LIST_ENTRIES_MAX))?;
    let position = |text| {
        list_token::to_position(text).ok_or_else(|| {
            AdminError::invalid("continuation_token is invalid: it must come from a response of this route")
        })
    };
    let list = ListObjects {
        prefix: query.text("prefix").unwrap_or_default().as_bytes(),
        delimiter: query.text("delimiter").filter(|text| !text.is_empty()).map(str::as_bytes),
        after: query.text("continuation_token").map(position).transpose()?,
        max: limit.map_or(LIST_ENTRIES_MAX, usize_of),
    };
    let engine = call.engine()?;
    let page = engine.list_objects(&bucket, &list)?;
    let mut objects = Vec::with_capacity(page.objects.len());
    for (index, listed) in page.objects.into_iter().enumerate() {
        if index % LIST_YIELD_ENTRIES == LIST_YIELD_ENTRIES - 1 {
            yield_now().await;
        }
        let key = ObjectKey::parse(&listed.key).map_err(|_| AdminError::Internal)?;
        // The entries of the list do not contain the content type.
        match engine.head_object(&bucket, &key, None) {
            Ok(info) => objects.push(object_entry(&bucket, listed.key, &info)),
            // The object was deleted after the list was read.
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let text = |prefix: Vec<u8>| String::from_utf8_lossy(&prefix).into_owned();
    let body = ObjectPage {
        objects,
        common_prefixes: page.common_prefixes.into_iter().map(text).collect(),
        next_continuation_token: page.next.as_ref().map(list_token::of_position),
    };
    Reply::json(StatusCode::OK, &body)
}
