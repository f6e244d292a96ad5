//! The routes of shares and embeds (specification, "Sharing").
//!
//! What both kinds have in common is here: lists, one link, its URL, revocation, deletion. Creation and changes are in
//! [`shares`] and [`embeds`].

mod body;
pub(crate) mod embeds;
mod object;
pub(crate) mod shares;
mod snippet;

use std::sync::Arc;

use cairn_api::{LinkUrl, Nothing, SharingSettings};
use cairn_engine::EngineError;
use cairn_model::{u64_of, usize_of};
use cairn_sharing::{LinkId, LinkObject, LinkQuery, LinkStatus, PAGE_LINKS_DEFAULT, PAGE_LINKS_MAX};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::objects::ObjectRef;
use crate::limits::LINKS_AT_ONCE;
use crate::reply::{Reply, continued_list, paged_list};
use crate::request::names::bucket_name;
use body::ManagedLink;

/// `GET /api/v1/buckets/{bucket}/object-shares/{key}`, and the same for embeds: the newest first. The object may have been
/// deleted since its links were created.
pub(crate) async fn list_of_object<T: ManagedLink>(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (bucket, key) = (call.bucket()?, call.key()?);
    let sharing = Arc::clone(call.sharing()?);
    let object =
        LinkObject { bucket: bucket.name.clone(), bucket_id: bucket.id(), key: key.clone(), version: None };
    let mut links = sharing.of_object::<T>(object).await?;
    if let Some(member) = call.author()? {
        links.retain(|link| link.is_of(&member));
    }
    if links.is_empty() {
        // A misspelt key is an error. An object in a damaged record has no links, too.
        let source = ObjectRef { bucket, key, version: None };
        match call.engine()?.head_object(&source.bucket, &source.key, None) {
            Err(EngineError::NoSuchKey | EngineError::DeleteMarker { .. } | EngineError::KeyTooLong) => {
                return Err(AdminError::ObjectNotFound);
            }
            found => drop(found.map_err(|error| source.read_error(&call, error))?),
        }
    }
    let now = sharing.now();
    let remaining = std::cell::RefCell::new(links.into_iter());
    let page = move |_: Option<&T>| remaining.borrow_mut().by_ref().take(LINKS_AT_ONCE).collect();
    Ok(paged_list(T::MEMBER, page, move |link| link.body(now)))
}

/// `GET /api/v1/shares` and `GET /api/v1/embeds`: pages of all links, the newest first. Members get the own ones.
pub(crate) async fn list<T: ManagedLink>(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let query = &call.parameters;
    let bucket = query.text("bucket").map(bucket_name).transpose()?;
    let status = query.text("status").map(status::<T>).transpose()?;
    let limit = query.number("limit", 1..=u64_of(PAGE_LINKS_MAX))?;
    let position = |text| {
        LinkId::parse(text).ok_or_else(|| {
            AdminError::invalid("continuation_token is invalid: it must come from a response of this route")
        })
    };
    let before = query.text("continuation_token").map(position).transpose()?;
    let bucket = match bucket {
        Some(name) => Some(call.store()?.bucket(&name).ok_or(AdminError::BucketNotFound)?),
        None => None,
    };
    let query = LinkQuery {
        bucket_id: bucket.map(|bucket| bucket.id()),
        status,
        created_by: query.text("created_by").map(str::to_owned),
        author: call.author()?,
        before,
        limit: limit.map_or(PAGE_LINKS_DEFAULT, usize_of),
    };
    let sharing = call.sharing()?;
    let page = sharing.page::<T>(query).await?;
    let (now, next) = (sharing.now(), page.next.map(|id| id.to_string()));
    continued_list(T::MEMBER, page.links, LINKS_AT_ONCE, move |link| link.body(now), next.as_deref())
}

fn status<T: ManagedLink>(name: &str) -> Result<LinkStatus, AdminError> {
    LinkStatus::from_name(name).filter(|status| T::STATUSES.contains(status)).ok_or_else(|| {
        let names: Vec<_> = T::STATUSES.iter().map(|status| status.name()).collect();
        AdminError::invalid(format!("status must be one of {}", names.join(", ")))
    })
}

/// `GET /api/v1/shares/{id}` and `GET /api/v1/embeds/{id}`.
pub(crate) async fn get<T: ManagedLink>(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let link: T = call.link()?;
    Reply::json(StatusCode::OK, &link.body(call.sharing()?.now()))
}

/// `GET /api/v1/shares/{id}/url` and `GET /api/v1/embeds/{id}/url`. The URL is the capability itself: each call is audited.
pub(crate) async fn url<T: ManagedLink>(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let link: T = call.link()?;
    let sharing = call.sharing()?;
    let token = sharing.token::<T>(link.link().id)?.ok_or(AdminError::LinkNotFound(T::KIND))?;
    let url = sharing.url(T::KIND, &token, call.head.header_str("host"));
    let detail = format!("the URL was shown; {}", object::described(link.link()));
    Ok(Reply::json(StatusCode::OK, &LinkUrl { url: url.into() })?.detail(detail))
}

/// `POST /api/v1/shares/{id}/revoke` and `POST /api/v1/embeds/{id}/revoke`: permanent. A second revocation changes nothing.
pub(crate) async fn revoke<T: ManagedLink>(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.link_id::<T>()?;
    let Nothing {} = call.optional_json().await?;
    let sharing = call.sharing()?;
    let (link, is_changed) = sharing.revoke::<T>(id).await?;
    let reply = Reply::json(StatusCode::OK, &link.body(sharing.now()))?;
    Ok(if is_changed { reply.detail(object::described(link.link())) } else { reply.without_change() })
}

/// `DELETE /api/v1/shares/{id}` and `DELETE /api/v1/embeds/{id}`: with its counts.
pub(crate) async fn delete<T: ManagedLink>(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let link: T = call.sharing()?.delete(call.link_id::<T>()?).await?;
    Ok(Reply::no_content().detail(object::described(link.link())))
}

/// `GET /api/v1/sharing/settings`: the configured policy.
pub(crate) async fn settings(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let policy = call.sharing()?.policy();
    let settings = SharingSettings {
        embeds_enabled: policy.embeds_enabled,
        maximum_lifetime_days: policy.maximum_lifetime_days,
        require_expiration: policy.require_expiration,
        share_base_url: policy.share_base_url.clone(),
        embed_base_url: policy.embed_base_url.clone(),
    };
    Reply::json(StatusCode::OK, &settings)
}
