//! `GET /api/v1/buckets/{bucket}/objects`: pages of objects in key order, the current ones or those of a moment.

use cairn_api::ObjectPage;
use cairn_engine::{EngineError, ListObjects, ListPosition};
use cairn_model::{ObjectKey, u64_of, usize_of};
use cairn_transfer::list_token;
use futures_lite::future::yield_now;
use http::StatusCode;

use super::moment::{AT, require_versions};
use super::record::object_entry;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{LIST_ENTRIES_MAX, LIST_YIELD_ENTRIES};
use crate::reply::Reply;
use crate::request::query::Parameters;

pub(crate) async fn list(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let query = &call.parameters;
    let (engine, list) = (call.engine()?, list_parameters(query)?);
    let at = query.time(AT)?;
    let page = match at {
        None => engine.list_objects(&bucket, &list)?,
        Some(at) => {
            require_versions(&bucket)?;
            engine.list_objects_at(&bucket, &list, at)?
        }
    };
    let mut objects = Vec::with_capacity(page.objects.len());
    for (index, listed) in page.objects.into_iter().enumerate() {
        if index % LIST_YIELD_ENTRIES == LIST_YIELD_ENTRIES - 1 {
            yield_now().await;
        }
        let key = ObjectKey::parse(&listed.key).map_err(|_| AdminError::Internal)?;
        // The entries of the list do not contain the content type.
        let found = match at {
            None => engine.head_object(&bucket, &key, None),
            Some(_) => engine.head_listed(&bucket, &key, listed.version),
        };
        match found {
            Ok(info) => objects.push(object_entry(&bucket, listed.key, &info)),
            // The object was deleted after the list was read.
            Err(EngineError::NoSuchKey | EngineError::NoSuchVersion | EngineError::DeleteMarker { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let body = ObjectPage {
        objects,
        common_prefixes: common_prefixes(page.common_prefixes),
        next_continuation_token: page.next.as_ref().map(list_token::of_position),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Returns the list that a query asks for.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn list_parameters(query: &Parameters) -> Result<ListObjects<'_>, AdminError> {
    Ok(ListObjects {
        prefix: query.text("prefix").unwrap_or_default().as_bytes(),
        delimiter: query.text("delimiter").filter(|text| !text.is_empty()).map(str::as_bytes),
        after: continuation(query)?,
        max: entries_max(query)?,
    })
}

/// Returns the most entries of a page: `limit` of a query.
///
/// # Errors
/// `INVALID_REQUEST`.
pub(super) fn entries_max(query: &Parameters) -> Result<usize, AdminError> {
    let limit = query.number("limit", 1..=u64_of(LIST_ENTRIES_MAX))?;
    Ok(limit.map_or(LIST_ENTRIES_MAX, usize_of))
}

/// Returns the position that the `continuation_token` of a query names.
///
/// # Errors
/// `INVALID_REQUEST` if the token is not one of this API.
pub(super) fn continuation(query: &Parameters) -> Result<Option<ListPosition>, AdminError> {
    let position = |text| {
        list_token::to_position(text).ok_or_else(|| {
            AdminError::invalid("continuation_token is invalid: it must come from a response of this route")
        })
    };
    query.text("continuation_token").map(position).transpose()
}

/// Returns the common prefixes of a page as texts.
pub(super) fn common_prefixes(prefixes: Vec<Vec<u8>>) -> Vec<String> {
    prefixes.into_iter().map(|prefix| String::from_utf8_lossy(&prefix).into_owned()).collect()
}
