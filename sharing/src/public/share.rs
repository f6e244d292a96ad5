//! `/s/{token}`, `/s/{token}/unlock` and `/s/{token}/content`: shares, for people.

use super::links::PublicLinks;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{Request, RequestBody, Response, ResponseBody, ResponseMeta};

/// What the paths of shares begin with.
const PREFIX: &str = "/s/";

impl PublicLinks {
    /// Returns whether a path belongs to shares.
    #[must_use]
    pub fn is_share_path(path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    /// Answers a request whose path belongs to shares.
    pub async fn answer_share(&self, request: &Request, _body: &mut RequestBody<'_>) -> Response {
        let status = StatusCode::NOT_FOUND;
        let meta = ResponseMeta {
            status,
            route: "/s/{token}",
            operation: "",
            request_id: request.id.clone(),
            principal: None,
            error_code: Some("SHARE_NOT_FOUND"),
        };
        Response { head: ResponseHead::new(status), body: ResponseBody::Empty, meta, close: false }
    }
}
