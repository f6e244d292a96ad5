//! [`ShareService`]: the listener for shares alone.

use super::links::PublicLinks;
use super::negotiation::{Language, prefers_page};
use super::page::{Message, render_message, security_policy};
use cairn_http1::{HeadError, Method, ResponseHead, StatusCode};
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, ResponseBody, Service};
use cairn_observe::{Plane, log_exchange};
use std::rc::Rc;

/// The rules for crawlers. Shares are not excluded here: a crawler that may not read them would not see that they must not be
/// indexed (`X-Robots-Tag`).
const ROBOTS: &str = "User-agent: *\nAllow: /s/\nDisallow: /\n";

/// Serves `/s/*` and `/robots.txt` on one executor, and nothing else.
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

/// The parts of a response that is not one of a share.
struct Plain<'a> {
    status: StatusCode,
    route: &'static str,
    content_type: &'a str,
    body: Vec<u8>,
    error_code: Option<&'static str>,
}

impl Plain<'_> {
    fn error(status: StatusCode, code: &'static str, message: String, request_id: &str) -> Self {
        let body = cairn_api::Error::new(code, message, request_id).to_json();
        Self { status, route: "", content_type: "application/json", body, error_code: Some(code) }
    }

    fn into_response(self, request_id: &str) -> Response {
        let mut head = ResponseHead::new(self.status);
        head.header("content-type", self.content_type)
            .header("cache-control", "no-store")
            .header("x-content-type-options", "nosniff")
            .header("content-security-policy", security_policy())
            .header("vary", "Accept, Accept-Language")
            .header("x-request-id", request_id);
        Response::new(head, ResponseBody::Full(self.body), request_id)
            .of(self.route, "")
            .with_error(self.error_code)
    }
}

impl Service for ShareService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let (method, path, id) = (request.head.method(), request.head.path(), &request.id);
        if PublicLinks::is_share_path(path) {
            return self.links.answer_share(request, body).await;
        }
        let is_read = *method == Method::GET || *method == Method::HEAD;
        let plain = if path == "/robots.txt" && is_read {
            Plain {
                status: StatusCode::OK,
                route: "/robots.txt",
                content_type: "text/plain; charset=utf-8",
                body: ROBOTS.as_bytes().to_vec(),
                error_code: None,
            }
        } else if prefers_page(&request.head) {
            let page = render_message(Language::of(&request.head), Message::NotFound);
            let status = StatusCode::NOT_FOUND;
            let content_type = "text/html; charset=utf-8";
            Plain { status, route: "", content_type, body: page.into_bytes(), error_code: Some("NOT_FOUND") }
        } else {
            Plain::error(StatusCode::NOT_FOUND, "NOT_FOUND", "the route does not exist".to_owned(), id)
        };
        plain.into_response(id)
    }

    /// Everything here is for visitors without an account.
    fn is_unsigned(&self, _request: &Request) -> bool {
        true
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        let (status, code, message) = rejection_error(reason);
        let mut response = Plain::error(status, code, message, request_id).into_response(request_id);
        response.close = true;
        response
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Console, exchange, None);
    }
}

/// Returns status, code and message for a connection without a valid request.
fn rejection_error(reason: Rejection) -> (StatusCode, &'static str, String) {
    let invalid = |status, message: &str| (status, "INVALID_REQUEST", message.to_owned());
    match reason {
        Rejection::Head(HeadError::BadRequest(what)) => {
            invalid(StatusCode::BAD_REQUEST, &format!("the request is malformed: {what}"))
        }
        Rejection::Head(error) => invalid(error.status(), &error.to_string()),
        Rejection::HeadTimeout | Rejection::BodyTimeout => {
            invalid(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time")
        }
        Rejection::PlainHttp => {
            invalid(StatusCode::BAD_REQUEST, "this port requires TLS: the URL must begin with https")
        }
        Rejection::Panic => {
            (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", "the request failed".to_owned())
        }
        Rejection::TooManyConnections => {
            (StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", "too many connections are open".to_owned())
        }
    }
}
