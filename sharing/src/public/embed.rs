//! `/e/{token}`: embeds, for pages of other sites.
//!
//! The checks come in this order, and the first that fails decides: method, token, revocation and expiry, the configuration,
//! the page's origin, the use that the browser wants to make of the content, the object, its type, the request's conditions,
//! its range. Everything is read from the durable state for every request. So a revocation is in force at once, also for a
//! browser that revalidates what it has.

mod access;
mod headers;
mod refusals;

use super::links::PublicLinks;
use super::read_audit::ReadAudit;
use super::refusal::Refusal;
use super::reply::Reply;
use crate::denied::DeniedReason;
use crate::downloads::Visitor;
use crate::types::embed::Embed;
use crate::types::link::{Disposition, LinkKind};
use crate::types::media_type::MediaClass;
use crate::types::origin::WebOrigin;
use crate::types::token::TokenHash;
use access::{check_destination, check_page};
use cairn_engine::{Bucket, EngineError, ObjectInfo, OpenObject};
use cairn_http1::{Method, ResponseHead};
use cairn_model::Timestamp;
use cairn_net::{Request, Response, ResponseBody};
use cairn_transfer::{ReadPlan, StartedPayload, stored_content_type};
use refusals::readable_by;
use std::sync::Arc;

/// The beginnings of the paths of embeds. No bucket has a name of one letter, so no object is at such a path. The second form
/// means the same (RFC 3986, section 6.2.2.2): a token must not become the key of an S3 request, which may be logged.
const PREFIXES: [&str; 2] = ["/e/", "/%65/"];
/// The route's pattern.
const ROUTE: &str = "/e/{token}";
/// The operation's name.
const OPERATION: &str = "get_embed";
/// The methods of embeds.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Returns what follows the prefix of embeds.
fn token_text(path: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix))
}

impl PublicLinks {
    /// Returns whether a path belongs to embeds. That it begins with several slashes does not make a key of the token: it then
    /// belongs to no embed, but no bucket has an empty name either.
    #[must_use]
    pub fn is_embed_path(path: &str) -> bool {
        let slashes = path.bytes().take_while(|byte| *byte == b'/').count();
        token_text(&path[slashes.saturating_sub(1)..]).is_some()
    }

    /// Answers a request whose path belongs to embeds.
    pub async fn answer_embed(&self, request: &Request) -> Response {
        let (Reply { head, body }, error_code) = match self.embed(request).await {
            Ok(reply) => (reply, None),
            Err(refusal) => {
                if let Some(reason) = refusal.reason {
                    self.links.count_denied(LinkKind::Embed, reason);
                }
                let is_head = *request.head.method() == Method::HEAD;
                (refusals::reply(&refusal, is_head), Some(refusal.code))
            }
        };
        Response::new(head, body, &request.id).of(ROUTE, OPERATION).with_error(error_code)
    }

    async fn embed(&self, request: &Request) -> Result<Reply, Refusal> {
        let head = &request.head;
        let is_preflight = match *head.method() {
            Method::GET | Method::HEAD => false,
            Method::OPTIONS => true,
            _ => return Err(refusals::method_not_allowed(METHODS)),
        };
        let token = token_text(head.path()).and_then(TokenHash::of).ok_or_else(refusals::not_found)?;
        let found = self.links.find::<Embed>(&token).map_err(|error| {
            let request_id = &request.id;
            tracing::error!(target: "service::sharing", request_id, cause = %error, "an embed could not be read");
            refusals::internal()
        })?;
        let embed = found.ok_or_else(refusals::not_found)?;
        let stopped = match DeniedReason::of(embed.status_at(self.links.now())) {
            Some(reason) => Some(refusals::gone(reason)),
            None if !self.links.policy().embeds_enabled => Some(refusals::disabled()),
            None => None,
        };
        let found = check_page(head, &embed);
        if let Some(refusal) = stopped {
            return Err(match found {
                Ok(reader) => readable_by(reader)(refusal),
                Err(_) => refusal,
            });
        }
        let reader = found?;
        if is_preflight {
            return Ok(Reply { head: headers::preflight(reader, METHODS), body: ResponseBody::Empty });
        }
        check_destination(head).map_err(readable_by(reader))?;
        let answer = self.embed_content(request, &embed, reader).await;
        answer.map_err(readable_by(reader))
    }

    /// Answers with the content, or with what conditions and ranges make of it.
    async fn embed_content(
        &self,
        request: &Request,
        embed: &Embed,
        reader: Option<&WebOrigin>,
    ) -> Result<Reply, Refusal> {
        let object = &embed.link.object;
        let bucket = self.bucket_of(object).map_err(|_| refusals::object_missing())?;
        let audit = || ReadAudit::new(&self.audit, request, OPERATION, LinkKind::Embed, &embed.link);
        let mut plan_read = |info: &ObjectInfo| plan(request, embed, reader, info, self.links.now());
        let is_head = *request.head.method() == Method::HEAD;
        let opened = if is_head {
            self.embed_head(&bucket, embed, &mut plan_read)
        } else {
            let opened = self.engine.open_object(&bucket, &object.key, object.version, |info| {
                let planned = plan_read(info);
                (planned.as_ref().map_or(0..0, |(plan, _)| plan.range()), planned)
            });
            opened.map(|(open, planned)| (Some(open), planned))
        };
        let (open, planned) = opened.map_err(|error| read_refusal(error, audit))?;
        let (plan, head) = planned?;
        if self.audit.data_events() >= cairn_observe::DataEvents::All {
            audit().record_read().await.map_err(|failure| Refusal::unrecorded(&failure))?;
        }
        let length = plan.range().end - plan.range().start;
        let body = match open {
            _ if plan == ReadPlan::NotModified => ResponseBody::Omitted { length: None },
            None => ResponseBody::Omitted { length: Some(length) },
            Some(_) if length == 0 => ResponseBody::Full(Vec::new()),
            Some(open) => {
                let payload =
                    StartedPayload::start(open).await.map_err(|error| read_refusal(error, audit))?;
                self.links.count_embed_download(embed, Visitor::new(request.client, None));
                payload.into_body(length, || {
                    let audit = audit();
                    move |cause| audit.failed(&cause)
                })
            }
        };
        Ok(Reply { head, body })
    }

    fn embed_head<T>(
        &self,
        bucket: &Arc<Bucket>,
        embed: &Embed,
        plan: &mut impl FnMut(&ObjectInfo) -> T,
    ) -> Result<(Option<OpenObject>, T), EngineError> {
        let object = &embed.link.object;
        let info = self.engine.head_object(bucket, &object.key, object.version)?;
        Ok((None, plan(&info)))
    }
}

/// Decides what is sent of a version, and writes the head of the response.
fn plan(
    request: &Request,
    embed: &Embed,
    reader: Option<&WebOrigin>,
    info: &ObjectInfo,
    now: Timestamp,
) -> Result<(ReadPlan, ResponseHead), Refusal> {
    let content_type = stored_content_type(&info.attributes);
    // It was checked when the embed was created, but the object may be another one since.
    if embed.disposition == Disposition::Inline && !MediaClass::of(&content_type).is_embeddable() {
        return Err(refusals::content_type());
    }
    let plan = ReadPlan::of(&request.head, info, now);
    match plan {
        ReadPlan::PreconditionFailed(_) => Err(refusals::precondition_failed()),
        ReadPlan::Unsatisfiable { size } => Err(refusals::range(size)),
        ReadPlan::Whole { .. } | ReadPlan::Part(_) | ReadPlan::NotModified => {
            let head = headers::content(&plan, embed, reader, info, &content_type);
            Ok((plan, head))
        }
    }
}

/// Returns the answer to a read that failed. Damage and failures of the device are logged and audited.
fn read_refusal(error: EngineError, audit: impl FnOnce() -> ReadAudit) -> Refusal {
    match error {
        EngineError::NoSuchBucket
        | EngineError::NoSuchKey
        | EngineError::NoSuchVersion
        | EngineError::DeleteMarker { .. } => refusals::object_missing(),
        EngineError::Overloaded | EngineError::ShuttingDown => refusals::unavailable(),
        other => {
            audit().failed(&other.to_string());
            refusals::internal()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PublicLinks, token_text};

    #[test]
    fn embeds_have_paths_that_no_bucket_has() {
        for (path, token) in [
            ("/e/abc", Some("abc")),
            ("/e/", Some("")),
            ("/%65/abc", Some("abc")),
            ("/e/abc/d", Some("abc/d")),
            ("/e", None),
            ("/e%2Fabc", None),
            ("/E/abc", None),
            ("/eee/abc", None),
        ] {
            assert_eq!(token_text(path), token, "{path}");
            assert_eq!(PublicLinks::is_embed_path(path), token.is_some(), "{path}");
        }
        assert!(PublicLinks::is_embed_path("///e/abc") && token_text("///e/abc").is_none());
        assert!(cairn_model::BucketName::parse("e").is_err());
    }
}
