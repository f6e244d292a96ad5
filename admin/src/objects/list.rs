//! `GET /api/v1/buckets/{bucket}/objects`: current objects in order of their keys, page by page.

use cairn_engine::{EngineError, ListObjects};
use cairn_model::ObjectKey;
use futures_lite::future::yield_now;
use http::StatusCode;
use serde::Serialize;

use super::record::ObjectBody;
use super::token;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{LIST_ENTRIES_MAX, LIST_TURN_ENTRIES};
use crate::reply::Reply;

#[derive(Serialize)]
struct PageBody {
    objects: Vec<ObjectBody>,
    common_prefixes: Vec<String>,
    next_continuation_token: Option<String>,
}

pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let given = call.parameters(&["prefix", "delimiter", "limit", "continuation_token"])?;
    let limit = given.number("limit", 1..=LIST_ENTRIES_MAX as u64)?;
    let position = |text| {
        token::to_position(text)
            .ok_or_else(|| AdminError::invalid("continuation_token is not one that was given here"))
    };
    let list = ListObjects {
        prefix: given.text("prefix").unwrap_or_default().as_bytes(),
        delimiter: given.text("delimiter").filter(|text| !text.is_empty()).map(str::as_bytes),
        after: given.text("continuation_token").map(position).transpose()?,
        max: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIST_ENTRIES_MAX),
    };
    let engine = call.engine()?;
    let page = engine.list_objects(&bucket, &list)?;
    let mut objects = Vec::with_capacity(page.objects.len());
    for (index, listed) in page.objects.into_iter().enumerate() {
        if index % LIST_TURN_ENTRIES == LIST_TURN_ENTRIES - 1 {
            yield_now().await;
        }
        let key = ObjectKey::parse(&listed.key).map_err(|_| AdminError::Internal)?;
        // The list's own records do not say what type an object has.
        match engine.head_object(&bucket, &key, None) {
            Ok(info) => objects.push(ObjectBody::new(&bucket, listed.key, &info)),
            // Gone since it was listed.
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let text = |prefix: Vec<u8>| String::from_utf8_lossy(&prefix).into_owned();
    let body = PageBody {
        objects,
        common_prefixes: page.common_prefixes.into_iter().map(text).collect(),
        next_continuation_token: page.next.as_ref().map(token::of_position),
    };
    Reply::json(StatusCode::OK, &body)
}
