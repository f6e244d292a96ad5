//! `/e/{token}`: embeds, for pages of other sites.

use super::links::PublicLinks;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{Request, Response, ResponseBody, ResponseMeta};

/// What the paths of embeds begin with. No bucket has a name of one letter, so no object is at such a path.
const PREFIX: &str = "/e/";

impl PublicLinks {
    /// Returns whether a path belongs to embeds.
    #[must_use]
    pub fn is_embed_path(path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    /// Answers a request whose path belongs to embeds.
    pub async fn answer_embed(&self, request: &Request) -> Response {
        let status = StatusCode::NOT_FOUND;
        let meta = ResponseMeta {
            status,
            route: "/e/{token}",
            operation: "",
            request_id: request.id.clone(),
            principal: None,
            error_code: Some("EMBED_NOT_FOUND"),
        };
        Response { head: ResponseHead::new(status), body: ResponseBody::Empty, meta, close: false }
    }
}
