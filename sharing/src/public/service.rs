//! [`ShareService`]: the listener for shares alone.

use super::links::PublicLinks;
use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, ResponseBody, ResponseMeta, Service};
use std::rc::Rc;

/// Serves `/s/*` on one executor, and nothing else.
pub struct ShareService {
    links: Rc<PublicLinks>,
}

impl ShareService {
    /// Returns a service for this executor.
    #[must_use]
    pub fn new(links: Rc<PublicLinks>) -> Rc<Self> {
        Rc::new(Self { links })
    }
}

impl Service for ShareService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        self.links.answer_share(request, body).await
    }

    fn reject(&self, _reason: Rejection, request_id: &str) -> Response {
        let status = StatusCode::BAD_REQUEST;
        let meta = ResponseMeta {
            status,
            route: "",
            operation: "",
            request_id: request_id.to_owned(),
            principal: None,
            error_code: None,
        };
        Response { head: ResponseHead::new(status), body: ResponseBody::Empty, meta, close: true }
    }

    fn completed(&self, _exchange: &Exchange<'_>) {}
}
