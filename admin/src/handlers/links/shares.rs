//! Creating and changing shares.

use cairn_api::{CreateShare, MAXIMUM_DOWNLOADS_MAX, UpdateShare};
use cairn_sharing::{Disposition, LinkKind, NewShare, Share, ShareChange};
use http::StatusCode;
use zeroize::Zeroizing;

use super::body::ManagedLink as _;
use super::object::{FoundObject, described, disposition, expiry};
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::version_name;

/// `POST /api/v1/buckets/{bucket}/object-shares/{key}`. All members of the body are optional.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CreateShare = call.optional_json().await?;
    // Zeroed when it is no longer needed.
    let password = request.password.map(|password| Zeroizing::new(password.into()));
    let version = request.version_id.as_deref().map(version_name).transpose()?;
    let disposition = request.disposition.as_deref().map(disposition).transpose()?;
    let expires_at = request.expires_at.as_deref().map(expiry).transpose()?;
    let found = FoundObject::of_path(&call, version)?;
    let new = NewShare {
        link: found.new_link(&call, request.label.map(String::from), expires_at)?,
        password,
        disposition: disposition.unwrap_or(Disposition::Inline),
        maximum_downloads: request.maximum_downloads.map(checked_maximum).transpose()?,
        author: call.author()?,
    };
    let sharing = call.sharing()?;
    let (share, token) = sharing.create_share(new).await?;
    let url = sharing.url(LinkKind::Share, &token, call.head.header_str("host"));
    let detail = format!("the URL of share {} was shown: {}", share.link.id, options(&share));
    let body = cairn_api::NewShare { share: share.body(sharing.now()), url: url.into() };
    Ok(Reply::json(StatusCode::CREATED, &body)?.detail(detail))
}

/// Checks the member `maximum_downloads`.
fn checked_maximum(maximum: u64) -> Result<u64, AdminError> {
    if (1..=MAXIMUM_DOWNLOADS_MAX).contains(&maximum) {
        return Ok(maximum);
    }
    let message = format!("maximum_downloads must be an integer from 1 to {MAXIMUM_DOWNLOADS_MAX}, or null");
    Err(AdminError::invalid(message))
}

/// Returns the audit detail of a share's options.
fn options(share: &Share) -> String {
    let version = share.link.object.version.map(|version| format!("version {version}"));
    let expiry = share.link.expires_at.map(|end| format!("until {}", cairn_http1::iso8601_millis(end.0)));
    let maximum = share.maximum_downloads.map(|maximum| format!("{maximum} downloads"));
    let author = share
        .author
        .as_ref()
        .map(|author| format!("if allowed by the policies {}", author.policies.join(", ")));
    let options = [
        Some(version.unwrap_or_else(|| "current version".to_owned())),
        share.is_password_protected().then(|| "with a password".to_owned()),
        Some(expiry.unwrap_or_else(|| "without expiry".to_owned())),
        maximum,
        author,
    ];
    options.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `PATCH /api/v1/shares/{id}`: changes the members that are given. Null removes a value. A change of the password ends all
/// unlocks.
pub(crate) async fn update(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.link_id::<Share>()?;
    let request: UpdateShare = call.json().await?;
    let expires_at = request.expires_at.map(|end| end.as_deref().map(expiry).transpose()).transpose()?;
    let change = ShareChange {
        label: request.label.map(|label| label.unwrap_or_default().into()),
        expires_at,
        password: request.password.map(|password| password.map(|password| Zeroizing::new(password.into()))),
        maximum_downloads: request
            .maximum_downloads
            .map(|maximum| maximum.map(checked_maximum).transpose())
            .transpose()?,
    };
    let changed: Vec<_> = [
        ("label", change.label.is_some()),
        ("expires_at", change.expires_at.is_some()),
        ("password", change.password.is_some()),
        ("maximum_downloads", change.maximum_downloads.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_changed)| is_changed.then_some(name))
    .collect();
    let sharing = call.sharing()?;
    if changed.is_empty() {
        let share: Share = call.link()?;
        return Ok(Reply::json(StatusCode::OK, &share.body(sharing.now()))?.without_change());
    }
    let share = sharing.update_share(id, change).await?;
    let detail = format!("{}: {} changed; {}", described(&share.link), changed.join(", "), options(&share));
    Ok(Reply::json(StatusCode::OK, &share.body(sharing.now()))?.detail(detail))
}
