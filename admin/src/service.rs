//! The management plane on one executor: from a request head to an answer.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::Engine;
use cairn_http1::{HeadError, RequestHead};
use cairn_identity::directory::Directory;
use cairn_net::{Drain, Exchange, Rejection, Request, RequestBody, Response, Service};
use cairn_observe::{AuditLog, Plane, client_request_id, log_exchange};
use http::{Method, StatusCode};

use crate::access::{AuthenticationKind, Caller, ManagementCredentials, is_cross_site, is_guessable};
use crate::audit::Trail;
use crate::call::Call;
use crate::error::AdminError;
use crate::failures::WrongCredentials;
use crate::metrics::MetricSources;
use crate::readiness::Readiness;
use crate::reply::{BodyWanted, Reply, respond};
use crate::routes::{Access, Route, Segments, find};
use crate::verify::Verifications;

/// What the plane needs.
pub struct AdminOptions {
    /// What callers are checked against.
    pub credentials: ManagementCredentials,
    /// The wrong credentials of late, on all executors.
    pub wrong_credentials: WrongCredentials,
    /// What `/ready` looks at.
    pub readiness: Box<dyn Readiness>,
    /// The store on this executor; without one, routes that need it are answered 503.
    pub engine: Option<Rc<Engine>>,
    /// The directory of accounts, which also has the management tokens; without one, only the configuration's credentials
    /// are known, and its routes are answered 503.
    pub directory: Option<Arc<Directory>>,
    /// The audit trail; without one, its route and all changes are answered 503.
    pub audit: Option<Arc<AuditLog>>,
    /// The verifications that run, on all executors.
    pub verifications: Verifications,
    /// What the metrics show beside the store and what is counted for the process.
    pub metrics: Arc<MetricSources>,
    /// The signal to stop: what takes long ends early.
    pub drain: Drain,
}

/// The management plane on one executor.
pub struct AdminService {
    pub(crate) options: AdminOptions,
}

/// A request as it came.
struct Incoming<'a, 'b> {
    head: &'a RequestHead,
    made_id: &'a str,
    client: IpAddr,
    body: Option<&'a mut RequestBody<'b>>,
}

impl AdminService {
    /// A service on this executor.
    #[must_use]
    pub fn new(options: AdminOptions) -> Rc<Self> {
        Rc::new(Self { options })
    }

    /// The path of every request.
    async fn answer(&self, incoming: Incoming<'_, '_>) -> Response {
        let head = incoming.head;
        let mut sent_ids = head.header_values("x-request-id");
        let sent_id = sent_ids.next().filter(|_| sent_ids.next().is_none());
        let id = sent_id.and_then(client_request_id).unwrap_or(incoming.made_id);
        let found = find(head.method(), head.path());
        let operation = found.route.as_ref().map_or("", |(route, _)| route.operation);
        let result = match found.route {
            Ok((route, segments)) => self.call_route(route, segments, id, incoming).await,
            Err(refusal) => Err(refusal),
        };
        let body_wanted =
            if *head.method() == Method::HEAD { BodyWanted::LengthOnly } else { BodyWanted::Yes };
        let mut response = respond(result, found.pattern, id, body_wanted);
        response.meta.operation = operation;
        response
    }

    /// Lets the caller in, has the request handled, and leaves its record.
    async fn call_route(
        &self,
        route: &'static Route,
        segments: Segments<'_>,
        request_id: &str,
        incoming: Incoming<'_, '_>,
    ) -> Result<Reply, AdminError> {
        let Incoming { head, client, body, .. } = incoming;
        let has_credential = head.header("authorization").is_some();
        let admitted = self.admit(route, head, client);
        let caller = admitted.as_ref().ok().and_then(Option::as_ref);
        let trail = Trail { operation: route.operation, segments, caller, request_id, client };
        let call = Call { service: self, caller, trail: &trail, head, segments, body };
        let refusal = match (&admitted, caller) {
            (Err(AdminError::Unauthenticated), _) if has_credential => {
                self.options.wrong_credentials.hold_back(client).await
            }
            (Err(error), _) => error.clone(),
            (Ok(_), Some(caller)) if !route.access.admits(caller.role) => AdminError::Forbidden,
            (Ok(_), Some(Caller { authentication: AuthenticationKind::Basic, .. }))
                if route.method != Method::GET && is_cross_site(head) =>
            {
                AdminError::CrossSite
            }
            (Ok(_), _) => return self.carry_out(route, call).await,
        };
        if let Some(log) = &self.options.audit {
            trail.refused(log, has_credential);
        }
        Err(refusal)
    }

    /// Finds out who asks; nobody does on a route for all.
    fn admit(&self, route: &Route, head: &RequestHead, client: IpAddr) -> Result<Option<Caller>, AdminError> {
        let credentials = &self.options.credentials;
        match route.access {
            Access::Public => Ok(None),
            Access::Scraper if credentials.is_scraper(head) => Ok(None),
            Access::Scraper => Err(AdminError::Unauthenticated),
            Access::Roles(_) if is_guessable(head) && self.options.wrong_credentials.is_crowded(client) => {
                Err(AdminError::TooManyRequests("too many wrong credentials came from this address"))
            }
            Access::Roles(_) => credentials.authenticate(head, self.options.directory.as_deref()).map(Some),
        }
    }

    /// Has a route's handler answer. A change is in the audit trail before it is begun, and its outcome before it is answered.
    async fn carry_out(&self, route: &Route, call: Call<'_, '_>) -> Result<Reply, AdminError> {
        if !route.is_recorded {
            return (route.handler)(call).await;
        }
        let log = self.options.audit.as_ref().ok_or(AdminError::NotReady("the store is not open"))?;
        let trail = call.trail;
        let intent = trail.intend(log).await?;
        let mut result = (route.handler)(call).await;
        let outcome = result.as_mut().map(|reply| std::mem::take(&mut reply.record));
        trail.settle(intent, outcome.map_err(|error| &*error)).await;
        result
    }
}

impl Service for AdminService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let client = request.client;
        self.answer(Incoming { head: &request.head, made_id: &request.id, client, body: Some(body) }).await
    }

    fn reject(&self, reason: Rejection, id: &str) -> Response {
        let mut response = respond(Err(rejection_error(reason)), "", id, BodyWanted::Yes);
        response.close = true;
        response
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Management, exchange);
    }
}

/// What is answered when there is no request to answer.
fn rejection_error(reason: Rejection) -> AdminError {
    match reason {
        Rejection::Head(HeadError::BadRequest(what)) => AdminError::Invalid(
            StatusCode::BAD_REQUEST,
            format!("the request could not be understood: {what}"),
        ),
        Rejection::Head(error) => AdminError::Invalid(error.status(), error.to_string()),
        Rejection::HeadTimeout | Rejection::BodyTimeout => {
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time".to_owned())
        }
        Rejection::PlainHttp => {
            AdminError::invalid("this port speaks TLS: the address must begin with https".to_owned())
        }
        Rejection::Panic => AdminError::Internal,
        Rejection::TooManyConnections => AdminError::NotReady("too many connections are open"),
    }
}

#[cfg(test)]
mod tests;
