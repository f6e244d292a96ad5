//! Creating and changing embeds.

use cairn_api::{CreateEmbed, EmbedVersion, UpdateEmbed};
use cairn_model::VersionName;
use cairn_sharing::{
    Disposition, Embed, EmbedChange, LinkError, LinkKind, MediaClass, NewEmbed, ORIGINS_MAX, WebOrigin,
};
use http::StatusCode;

use super::body::ManagedLink as _;
use super::object::{FoundObject, described, disposition, expiry};
use super::snippet::snippet;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::names::version_name;

/// Most characters of an origin that an error message quotes.
const QUOTED_CHARACTERS_MAX: usize = 100;
/// Most origins that an audit record names.
const ORIGINS_NAMED_MAX: usize = 5;

/// Returns the pinned version, if one is.
fn pinned(choice: &EmbedVersion) -> Result<Option<VersionName>, AdminError> {
    match (&*choice.mode, choice.version_id.as_deref()) {
        ("current", None) => Ok(None),
        ("current", Some(_)) => Err(AdminError::invalid("version_id needs the mode pinned")),
        ("pinned", Some(id)) => version_name(id).map(Some),
        ("pinned", None) => Err(AdminError::invalid("the mode pinned needs a version_id")),
        _ => Err(AdminError::invalid("the mode of version must be current or pinned")),
    }
}

/// `POST /api/v1/buckets/{bucket}/object-embeds/{key}`. The response contains HTML for the pages that use the embed.
pub(crate) async fn create(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let request: CreateEmbed = call.json().await?;
    let sharing = call.sharing()?;
    if !sharing.policy().embeds_enabled {
        return Err(LinkError::EmbedsDisabled.into());
    }
    let version = request.version.as_ref().map(pinned).transpose()?.flatten();
    let disposition = request.disposition.as_deref().map(disposition).transpose()?;
    let disposition = disposition.unwrap_or(Disposition::Inline);
    let expires_at = request.expires_at.as_deref().map(expiry).transpose()?;
    let allowed_origins = origins(&request.allowed_origins)?;
    let found = FoundObject::of_path(&call, version)?;
    check_type(&found, disposition)?;
    let link = found.new_link(&call, request.label.map(String::from), expires_at)?;
    let (embed, token) = sharing.create_embed(NewEmbed { link, allowed_origins, disposition }).await?;
    let url = sharing.url(LinkKind::Embed, &token, call.head.header_str("host"));
    let detail = format!("the URL of embed {} was shown: {}", embed.link.id, options(&embed));
    let snippet = snippet(&embed, MediaClass::of(&found.content_type), &url);
    let body = cairn_api::NewEmbed { embed: embed.body(sharing.now()), url: url.into(), snippet };
    Ok(Reply::json(StatusCode::CREATED, &body)?.detail(detail))
}

/// Parses `allowed_origins`: all of them, or none.
fn origins(texts: &[cairn_api::WebOrigin]) -> Result<Vec<WebOrigin>, AdminError> {
    if texts.is_empty() || texts.len() > ORIGINS_MAX {
        return Err(AdminError::invalid(format!("allowed_origins must have 1 to {ORIGINS_MAX} entries")));
    }
    let parsed = texts.iter().map(|text| {
        WebOrigin::parse(text).map_err(|reason| {
            let quoted: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
            let reason = reason.0;
            AdminError::InvalidOrigin(format!(
                "allowed_origins contains {quoted:?}, which is not an origin such as https://www.example.com: {reason}"
            ))
        })
    });
    parsed.collect()
}

/// Checks that the type of the object allows the disposition. It is checked again at each delivery.
fn check_type(found: &FoundObject, disposition: Disposition) -> Result<(), AdminError> {
    let FoundObject { content_type, .. } = found;
    if disposition == Disposition::Attachment || MediaClass::of(content_type).is_embeddable() {
        return Ok(());
    }
    let quoted: String = content_type.chars().take(QUOTED_CHARACTERS_MAX).collect();
    Err(AdminError::EmbedContentTypeRefused(format!(
        "only images other than SVG, video and audio can be shown inline, and this object has the type {quoted:?}: use the \
         disposition attachment, or store the object with its right type"
    )))
}

/// Returns the audit detail of an embed's options.
fn options(embed: &Embed) -> String {
    let link = &embed.link;
    let version = link.object.version.map(|version| format!("version {version}"));
    let expiry = link.expires_at.map(|end| format!("until {}", cairn_http1::iso8601_millis(end.0)));
    let mut origins: Vec<_> = embed.allowed_origins.iter().map(ToString::to_string).collect();
    if origins.len() > ORIGINS_NAMED_MAX {
        let others = origins.len() - ORIGINS_NAMED_MAX;
        origins.truncate(ORIGINS_NAMED_MAX);
        origins.push(format!("and {others} others"));
    }
    let (version, expiry) = (version.as_deref(), expiry.as_deref());
    format!(
        "{}, {}, {}, for {}",
        version.unwrap_or("current version"),
        embed.disposition.name(),
        expiry.unwrap_or("without expiry"),
        origins.join(" ")
    )
}

/// `PATCH /api/v1/embeds/{id}`: changes the members that are given. Null removes a value. The URL stays.
pub(crate) async fn update(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let id = call.link_id::<Embed>()?;
    let request: UpdateEmbed = call.json().await?;
    let expires_at = request.expires_at.map(|end| end.as_deref().map(expiry).transpose()).transpose()?;
    let change = EmbedChange {
        label: request.label.map(|label| label.unwrap_or_default().into()),
        expires_at,
        allowed_origins: request.allowed_origins.as_deref().map(origins).transpose()?,
        disposition: request.disposition.as_deref().map(disposition).transpose()?,
    };
    let embed: Embed = call.link()?;
    if change.disposition == Some(Disposition::Inline) && embed.disposition != Disposition::Inline {
        check_type(&FoundObject::of_link(&call, &embed.link)?, Disposition::Inline)?;
    }
    let changed: Vec<_> = [
        ("label", change.label.is_some()),
        ("expires_at", change.expires_at.is_some()),
        ("allowed_origins", change.allowed_origins.is_some()),
        ("disposition", change.disposition.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_changed)| is_changed.then_some(name))
    .collect();
    let sharing = call.sharing()?;
    if changed.is_empty() {
        return Ok(Reply::json(StatusCode::OK, &embed.body(sharing.now()))?.without_change());
    }
    let embed = sharing.update_embed(id, change).await?;
    let detail = format!("{}: {} changed; {}", described(&embed.link), changed.join(", "), options(&embed));
    Ok(Reply::json(StatusCode::OK, &embed.body(sharing.now()))?.detail(detail))
}
