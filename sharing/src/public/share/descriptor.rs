//! `GET /s/{token}`: what a share gives access to, as JSON or as a page.

use super::content::record_read;
use super::path::SharePage;
use super::visit::{Access, Visit};
use super::{refusals, reply};
use crate::public::negotiation::{Language, prefers_page};
use crate::public::page::{FileView, render_locked};
use crate::public::refusal::Refusal;
use crate::public::reply::Reply;
use crate::types::link::Disposition;
use crate::types::media_type::MediaClass;
use cairn_api::ShareDescriptor;
use cairn_engine::{ChecksumAlgorithm, ChecksumKind, ObjectInfo};
use cairn_http1::{StatusCode, file_name};
use cairn_transfer::stored_content_type;

/// Answers a request for a usable share.
pub(crate) async fn descriptor(visit: &Visit<'_>) -> Result<Reply, Refusal> {
    let is_page = prefers_page(&visit.request.head);
    let language = Language::of(&visit.request.head);
    let link = &visit.share.link;
    let mut descriptor = ShareDescriptor {
        name: None,
        size: None,
        content_type: None,
        last_modified: None,
        expires_at: link.expires_at.map(Into::into),
        password_required: visit.share.is_password_protected(),
        unlocked: false,
        content_url: None,
    };
    if visit.access() == Access::Locked {
        if !is_page {
            return reply::json(&descriptor);
        }
        let unlock = visit.relative_url(SharePage::Unlock);
        let page = render_locked(language, &unlock, None, is_without_cookies(visit));
        return Ok(reply::page(StatusCode::OK, language, page));
    }
    let bucket = visit.public.bucket_of(&link.object).map_err(refusals::of_engine)?;
    let info = visit.public.engine.head_object(&bucket, &link.object.key, link.object.version);
    let info = info.map_err(refusals::of_engine)?;
    record_read(visit).await?;
    let name = file_name(&link.object.key.to_string());
    if is_page {
        let page = file_view(visit, name, &info).render(language);
        return Ok(reply::page(StatusCode::OK, language, page));
    }
    descriptor.name = Some(name);
    descriptor.size = Some(info.size);
    descriptor.content_type = Some(stored_content_type(&info.attributes));
    descriptor.last_modified = Some(info.last_modified.into());
    descriptor.unlocked = true;
    descriptor.content_url = Some(format!("{}/content", visit.url()));
    reply::json(&descriptor)
}

/// Returns whether the browser may have left out the cookie because a page of another site led here (`SameSite=Strict`).
/// The page then reloads itself once, and that request has the cookie.
fn is_without_cookies(visit: &Visit<'_>) -> bool {
    let site = visit.request.head.header_str("sec-fetch-site");
    matches!(site, Some("cross-site" | "same-site")) && !visit.has_unlock()
}

fn file_view(visit: &Visit<'_>, name: String, info: &ObjectInfo) -> FileView {
    let share = visit.share;
    let content_type = stored_content_type(&info.attributes);
    let downloads_left =
        share.maximum_downloads.map(|maximum| maximum.saturating_sub(share.link.access_count));
    let is_public = !share.is_password_protected() && downloads_left.is_none();
    let sha256 = info.attributes.checksums.iter().find(|(algorithm, _)| {
        *algorithm == ChecksumAlgorithm::Sha256 && info.attributes.checksum_kind == ChecksumKind::FullObject
    });
    FileView {
        name,
        size: info.size,
        class: MediaClass::of(&content_type),
        content_type: content_type.split(';').next().unwrap_or_default().trim().to_owned(),
        last_modified: info.last_modified,
        expires_at: share.link.expires_at,
        downloads_left,
        is_pinned: share.link.object.version.is_some(),
        sha256: sha256.map(|(_, digest)| hex::encode(digest)),
        etag: info.etag.to_string(),
        is_inline: share.disposition == Disposition::Inline,
        content: visit.relative_url(SharePage::Content),
        public_content: is_public.then(|| format!("{}/content", visit.url())),
    }
}
