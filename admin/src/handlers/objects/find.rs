//! `GET /api/v1/buckets/{bucket}/find`: the objects that fulfil conditions, in the background and within bounds.

use std::rc::Rc;

use cairn_api::FoundPage;
use cairn_engine::limits::OBJECT_TAGS_MAX;
use cairn_engine::{AttributesFilter, FindObjects, InvalidTags, KeyFilter, SearchBounds, Tags};
use cairn_model::{Glob, OBJECT_KEY_BYTES_MAX, Timestamp};
use cairn_transfer::{list_token, stored_content_type};
use http::StatusCode;

use super::list::{continuation, entries_max};
use super::moment::{AT, check_prefix, require_versions};
use super::record::object_entry;
use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{FIND_BYTES_MAX, FIND_KEYS_MAX, FIND_TIME_MAX, FIND_TYPE_CHARACTERS_MAX};
use crate::reply::Reply;
use crate::request::query::Parameters;

pub(crate) async fn find(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let find = find_parameters(&call.parameters)?;
    if find.at.is_some() {
        require_versions(&bucket)?;
    }
    let engine = Rc::clone(call.engine()?);
    let found = call.wait_for_read(async { Ok(engine.find_objects(&bucket, find).await?) }).await?;
    let objects = found.objects.into_iter().map(|(key, info)| object_entry(&bucket, key, &info)).collect();
    let body = FoundPage {
        objects,
        examined: found.examined,
        complete: found.next.is_none(),
        next_continuation_token: found.next.as_ref().map(list_token::of_position),
    };
    Reply::json(StatusCode::OK, &body)
}

/// Returns the search that a query asks for.
///
/// # Errors
/// `INVALID_REQUEST`, with what is wrong.
fn find_parameters(query: &Parameters) -> Result<FindObjects, AdminError> {
    let max = entries_max(query)?;
    let prefix = query.text("prefix").unwrap_or_default();
    check_prefix(prefix)?;
    let key = key_filter(query)?;
    let sizes = 0..=FIND_BYTES_MAX;
    let bytes_min = query.number("min_bytes", sizes.clone())?.unwrap_or(0);
    let bytes_max = query.number("max_bytes", sizes)?.unwrap_or(u64::MAX);
    if bytes_min > bytes_max {
        return Err(AdminError::invalid("min_bytes is greater than max_bytes"));
    }
    let modified = query.time("modified_since")?.unwrap_or(Timestamp(0))
        ..query.time("modified_until")?.unwrap_or(Timestamp(u64::MAX));
    if modified.is_empty() {
        return Err(AdminError::invalid("modified_until must be later than modified_since"));
    }
    let (prefix, max) = match &key {
        Some(KeyFilter::Glob(glob)) => match longer(prefix, glob.prefix()) {
            Some(prefix) => (prefix, max),
            // No key begins with both.
            None => (String::new(), 0),
        },
        _ => (prefix.to_owned(), max),
    };
    Ok(FindObjects {
        prefix: prefix.into_bytes(),
        key,
        bytes_min,
        bytes_max,
        modified,
        attributes: attributes_filter(query)?,
        at: query.time(AT)?,
        after: continuation(query)?,
        max,
        bounds: SearchBounds { keys: FIND_KEYS_MAX, time: FIND_TIME_MAX },
    })
}

/// Returns the longer of two prefixes, if it begins with the other one.
fn longer(one: &str, other: String) -> Option<String> {
    if other.starts_with(one) {
        return Some(other);
    }
    one.starts_with(&other).then(|| one.to_owned())
}

fn key_filter(query: &Parameters) -> Result<Option<KeyFilter>, AdminError> {
    let text = |name| match query.text(name) {
        Some(text) if text.is_empty() || text.chars().count() > OBJECT_KEY_BYTES_MAX => {
            Err(AdminError::invalid(format!("{name} must have 1 to {OBJECT_KEY_BYTES_MAX} characters")))
        }
        text => Ok(text),
    };
    match (text("contains")?, text("glob")?) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(KeyFilter::Contains(text.to_owned()))),
        (None, Some(pattern)) => match Glob::parse(pattern) {
            Ok(glob) => Ok(Some(KeyFilter::Glob(glob))),
            Err(error) => Err(AdminError::invalid(format!("glob: {error}"))),
        },
        (Some(_), Some(_)) => Err(AdminError::invalid("contains and glob cannot be given together")),
    }
}

/// Returns the condition on content type and tags, if there is one.
fn attributes_filter(query: &Parameters) -> Result<Option<AttributesFilter>, AdminError> {
    let pairs = query.family("tag.").map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let tags = Tags::new(pairs, OBJECT_TAGS_MAX).map_err(|invalid| {
        AdminError::invalid(match invalid {
            InvalidTags::TooMany(max) => format!("an object has at most {max} tags"),
            InvalidTags::Duplicate(key) => format!("tag.{key} must not be repeated"),
            InvalidTags::Key(key) if key.is_empty() => {
                "tag. must be followed by the name of a tag".to_owned()
            }
            InvalidTags::Key(key) => format!("tag.{key}: no tag can have this name"),
            InvalidTags::Value { key, .. } => format!("tag.{key}: no tag can have this value"),
        })
    })?;
    let content_type = query.text("content_type").map(str::to_ascii_lowercase);
    let length = content_type.as_ref().map_or(1, |wanted| wanted.chars().count());
    if !(1..=FIND_TYPE_CHARACTERS_MAX).contains(&length) {
        let message = format!("content_type must have 1 to {FIND_TYPE_CHARACTERS_MAX} characters");
        return Err(AdminError::invalid(message));
    }
    if content_type.is_none() && tags.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |attributes| {
        attributes.tags.contains_all(&tags)
            && content_type.as_ref().is_none_or(|wanted| is_of_type(&stored_content_type(attributes), wanted))
    })))
}

/// Returns whether a stored content type is the wanted one, which is in lower case. Parameters such as a `charset` count only
/// if they are wanted too, and `image/*` is every image.
fn is_of_type(stored: &str, wanted: &str) -> bool {
    let stored = stored.to_ascii_lowercase();
    match wanted.strip_suffix('*') {
        Some(family) if family.ends_with('/') => stored.starts_with(family),
        _ => stored == wanted || stored.split(';').next().map(str::trim_end) == Some(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::{find_parameters, is_of_type};
    use crate::routes::query_of;
    use cairn_engine::FindObjects;

    fn parse(query: &str) -> Result<FindObjects, String> {
        let query = query_of("find_objects", query).map_err(|error| error.message())?;
        find_parameters(&query).map_err(|error| error.message())
    }

    #[test]
    fn the_longer_prefix_is_searched() {
        let searched = |query| parse(query).map(|find| (find.prefix, find.max)).expect("valid");
        assert_eq!(searched("prefix=a&limit=5"), (b"a".to_vec(), 5));
        assert_eq!(searched("prefix=a&glob=abc*"), (b"abc".to_vec(), 1000));
        assert_eq!(searched("prefix=abc/&glob=**"), (b"abc/".to_vec(), 1000));
        assert_eq!(searched("prefix=b&glob=a*").1, 0, "nothing can match");
    }

    #[test]
    fn wrong_conditions_are_named() {
        let long = "a".repeat(1025);
        for (query, named) in [
            ("contains=", "contains must have 1 to 1024 characters"),
            (&format!("glob={long}"), "glob must have 1 to 1024 characters"),
            ("contains=a&glob=b", "contains and glob cannot be given together"),
            ("glob=%5Ba", "glob: the pattern has a [ without a ]"),
            ("min_bytes=2&max_bytes=1", "min_bytes is greater than max_bytes"),
            ("min_bytes=-1", "min_bytes must be an integer"),
            (
                "modified_since=2026-01-01T00:00:00Z&modified_until=2026-01-01T00:00:00Z",
                "modified_until must be",
            ),
            ("modified_since=yesterday", "modified_since must be a time"),
            ("at=now", "at must be a time"),
            ("tag.=x", "tag. must be followed"),
            ("tag.a%00=x", "no tag can have this name"),
            ("tag.a=%00", "no tag can have this value"),
            ("tag.a=1&tag.a=2", "must not be repeated"),
            ("content_type=", "content_type must have 1 to 255 characters"),
            ("limit=0", "limit must be"),
            ("continuation_token=x", "continuation_token is invalid"),
            ("size=1", "unknown query parameter size"),
        ] {
            let message = parse(query).err().unwrap_or_default();
            assert!(message.contains(named), "{query}: {message}");
        }
        let tags: String = (0..11).map(|number| format!("&tag.{number}=v")).collect();
        assert_eq!(parse(&tags[1..]).err().as_deref(), Some("an object has at most 10 tags"));
    }

    #[test]
    fn types_are_compared_without_case_and_parameters() {
        for (stored, wanted) in [
            ("image/png", "image/png"),
            ("Image/PNG", "image/*"),
            ("text/plain; charset=utf-8", "text/plain"),
            ("text/plain ;charset=utf-8", "text/plain"),
            ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ] {
            assert!(is_of_type(stored, wanted), "{stored} {wanted}");
        }
        for (stored, wanted) in
            [("image/png", "image"), ("text/plain", "text/plain; charset=utf-8"), ("imagex/a", "image/*")]
        {
            assert!(!is_of_type(stored, wanted), "{stored} {wanted}");
        }
    }
}
