//! [`ConsoleService`]: the console's listener on one executor.

use std::rc::Rc;
use std::sync::Arc;

use cairn_admin::AdminService;
use cairn_http1::{Method, ResponseHead, StatusCode};
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, ResponseBody, Service};
use cairn_observe::{Plane, log_exchange};
use cairn_sharing::{PublicLinks, ShareService};

use crate::files::{ConsoleFiles, Found};
use crate::hosts::{ConsoleHosts, content_security_policy};

/// Route patterns of what this crate serves itself, for the request log.
const PAGE_ROUTE: &str = "/";
const ASSET_ROUTE: &str = "/assets/{file}";
/// The paths of logins, which the management plane serves.
const LOGIN_ROUTES: [&str; 4] = ["/session", "/sign-in", "/sign-in/callback", "/sign-in/logout"];
/// The operation of these routes.
const OPERATION: &str = "get_console";

/// Serves the console on one executor.
pub struct ConsoleService {
    shares: Rc<ShareService>,
    administration: Option<Administration>,
}

/// The web console, which is served besides shares.
struct Administration {
    admin: Rc<AdminService>,
    hosts: ConsoleHosts,
    files: Arc<ConsoleFiles>,
}

impl ConsoleService {
    /// Returns a service for shares alone.
    #[must_use]
    pub fn for_shares(shares: Rc<ShareService>) -> Rc<Self> {
        Rc::new(Self { shares, administration: None })
    }

    /// Returns a service for shares and administration. `admin` authenticates by session.
    #[must_use]
    pub fn new(
        shares: Rc<ShareService>,
        admin: Rc<AdminService>,
        hosts: ConsoleHosts,
        files: Arc<ConsoleFiles>,
    ) -> Rc<Self> {
        Rc::new(Self { shares, administration: Some(Administration { admin, hosts, files }) })
    }
}

impl Administration {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let host = request.head.header_str("host").unwrap_or_default();
        if !self.hosts.allows(host, request.local) {
            return refusal(
                request,
                StatusCode::MISDIRECTED_REQUEST,
                "This host is not one of the console: add it to console.hosts.\n",
            );
        }
        let Some(found) = self.files.find(request.head.path()) else {
            return self.admin.call(request, body).await;
        };
        let route = match found {
            Found::Page(_) => PAGE_ROUTE,
            Found::Asset(_) => ASSET_ROUTE,
        };
        if !matches!(*request.head.method(), Method::GET | Method::HEAD) {
            let mut refused =
                refusal(request, StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are allowed here.\n");
            refused.head.header("allow", "GET, HEAD");
            refused.meta.route = route;
            return refused;
        }
        let (mut head, body) = self.files.respond(found, &request.head, &content_security_policy(host));
        protect(&mut head);
        Response::new(head, body, &request.id).of(route, OPERATION)
    }
}

fn protect(head: &mut ResponseHead) {
    head.header("x-content-type-options", "nosniff");
    head.header("referrer-policy", "no-referrer");
}

/// Keeps pages of other origins from loading an answer of the console. Pages on other ports of the same host are such pages,
/// and browsers send the cookie of the console for them. Shares set this header themselves.
fn keep_to_origin(response: &mut Response) {
    const NAME: &str = "cross-origin-resource-policy";
    if response.head.get(NAME).is_none() {
        response.head.header(NAME, "same-origin");
    }
}

/// Returns whether a path is served without a session, by the part that serves shares.
fn is_for_visitors(path: &str) -> bool {
    PublicLinks::is_share_path(path) || path == "/robots.txt"
}

/// A refusal in plain text.
fn refusal(request: &Request, status: StatusCode, text: &str) -> Response {
    let mut head = ResponseHead::new(status);
    protect(&mut head);
    head.header("cache-control", "no-store");
    head.header("content-type", "text/plain; charset=utf-8");
    Response::new(head, ResponseBody::Full(text.as_bytes().to_vec()), &request.id).of("", OPERATION)
}

impl Service for ConsoleService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        match &self.administration {
            Some(administration) if !is_for_visitors(request.head.path()) => {
                let mut response = administration.call(request, body).await;
                keep_to_origin(&mut response);
                response
            }
            _ => self.shares.call(request, body).await,
        }
    }

    /// Everybody may load shares, the page and its files, and log in. All else needs a session.
    fn is_unsigned(&self, request: &Request) -> bool {
        let path = request.head.path();
        self.administration.as_ref().is_none_or(|administration| {
            is_for_visitors(path) || LOGIN_ROUTES.contains(&path) || administration.files.find(path).is_some()
        })
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        let mut response = self.shares.reject(reason, request_id);
        if self.administration.is_some() {
            keep_to_origin(&mut response);
        }
        response
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Console, exchange, None);
    }
}
