//! The management plane on one executor: takes a request from its head to its response.

use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use cairn_http1::{HeadError, RequestHead, decode};
use cairn_identity::FailedCredential;
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, Service};
use cairn_observe::{
    AuditKind, DataEvents, LoggedResource, Plane, client_request_id, log_exchange, paths_are_logged,
};
use cairn_sharing::{PublicLinks, recordable_names};
use http::{Method, StatusCode};

use crate::access::{
    AuditContext, AuthenticationKind, Caller, NO_SESSION, check_root_attempts, delay_failure,
    has_basic_credential, is_cross_site, is_navigation, is_of_console, is_wanted_read,
};
use crate::call::{Call, Reads};
use crate::context::AdminContext;
use crate::error::AdminError;
use crate::operation::{Access, Operation};
use crate::reply::{Reply, respond};
use crate::request::path::{Segments, match_path};
use crate::request::query::Parameters;
use crate::routes::{READ_BATCH, Route, Surface, find};

/// The management plane on one executor.
pub struct AdminService {
    context: AdminContext,
}

/// A received request.
struct Incoming<'a, 'b> {
    head: &'a RequestHead,
    /// The id that is used unless the client sent a valid one.
    generated_id: &'a str,
    client: IpAddr,
    body: Option<&'a mut RequestBody<'b>>,
}

impl AdminService {
    /// Returns a service for this executor.
    #[must_use]
    pub fn new(context: AdminContext) -> Rc<Self> {
        Rc::new(Self { context })
    }

    fn surface(&self) -> Surface {
        if self.context.sessions.is_some() { Surface::Console } else { Surface::Management }
    }

    /// Answers a request.
    async fn answer(&self, incoming: Incoming<'_, '_>) -> Response {
        let head = incoming.head;
        let id = client_request_id(head.header_values("x-request-id")).unwrap_or(incoming.generated_id);
        let found = find(self.surface(), head.method(), head.path());
        let operation = found.route.as_ref().map_or("", |(route, _)| route.operation.name);
        let mut principal = None;
        let result = match found.route {
            Ok((route, segments)) => self.call_route(route, segments, id, incoming, &mut principal).await,
            Err(error) => Err(error),
        };
        let mut response = respond(result, found.pattern, id);
        response.meta.operation = operation;
        response.meta.principal = principal;
        response
    }

    /// Authenticates and authorizes the caller, then runs the handler. A refusal is audited. Stores the name of an
    /// authenticated caller in `principal`.
    async fn call_route(
        &self,
        route: &'static Route,
        segments: Segments<'_>,
        request_id: &str,
        incoming: Incoming<'_, '_>,
        principal: &mut Option<Arc<str>>,
    ) -> Result<Reply, AdminError> {
        let Incoming { head, client, body, .. } = incoming;
        let is_change = !matches!(*head.method(), Method::GET | Method::HEAD);
        // A browser sends the cookie for pages on other ports of the same host, too.
        let is_wanted = match route.operation.access {
            Access::Redirected => is_navigation(head),
            Access::Signed => true,
            _ if is_change => is_of_console(head),
            _ => is_wanted_read(head),
        };
        if self.surface() == Surface::Console && !is_wanted {
            let operation = route.operation.name;
            let audit = AuditContext { operation, segments, caller: None, request_id, client };
            if let Some(log) = self.context.audit() {
                audit.record_denial(log, "the request did not come from a page of the console");
            }
            return Err(AdminError::NotOfConsole);
        }
        let has_credential = self.surface() == Surface::Management && head.header("authorization").is_some();
        let authenticated = self.authenticate(&route.operation, head, client);
        let caller = authenticated.as_ref().ok().and_then(Option::as_ref);
        *principal = caller.map(|caller| caller.principal.as_str().into());
        let audit = AuditContext { operation: route.operation.name, segments, caller, request_id, client };
        let call = Call {
            context: &self.context,
            caller,
            audit: &audit,
            head,
            segments,
            parameters: Parameters::default(),
            member_access: route.operation.members,
            reads: self,
            body,
        };
        let refusal = match (&authenticated, caller) {
            (Err(error @ (AdminError::Unauthenticated | AdminError::NotScraper(_))), _) if has_credential => {
                self.throttle_failure(head, client, error).await
            }
            (Err(error), _) => error.clone(),
            (Ok(_), Some(caller)) if !route.operation.admits(&caller.standing) => route.operation.refusal(),
            (Ok(_), Some(Caller { authentication: AuthenticationKind::Basic, .. }))
                if route.operation.method != Method::GET && is_cross_site(head) =>
            {
                AdminError::CrossSite
            }
            (Ok(_), _) => match call.authorize_member() {
                Ok(()) => return self.run_admitted(route, call).await,
                Err(refusal @ (AdminError::MissingRight(_) | AdminError::Forbidden)) => refusal,
                Err(error) => return Err(error),
            },
        };
        if let Some(log) = self.context.audit() {
            match &refusal {
                AdminError::MissingRight(message) => audit.record_denial(log, message),
                _ => audit.record_refusal(log, has_credential),
            }
        }
        Err(refusal)
    }

    /// Runs the handler. A member may turn out to lack a right: the body names the object, or its policies have changed
    /// meanwhile.
    async fn run_admitted(&self, route: &Route, call: Call<'_, '_>) -> Result<Reply, AdminError> {
        let (audit, hidden) = (call.audit, call.hiding_missing());
        let error = match self.run_handler(route, call).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        if let (AdminError::MissingRight(message), Some(log)) = (&error, self.context.audit()) {
            audit.record_denial(log, message);
        }
        Err(match (error, hidden) {
            (AdminError::ObjectNotFound | AdminError::VersionNotFound, Some(hidden)) => hidden,
            (error, _) => error,
        })
    }

    /// Authenticates the caller. Returns `None` for operations without a caller: public ones and the scrape.
    fn authenticate(
        &self,
        operation: &Operation,
        head: &RequestHead,
        client: IpAddr,
    ) -> Result<Option<Caller>, AdminError> {
        let (credentials, directory) = (&self.context.credentials, self.context.directory());
        if let (Access::Roles(_), Some(sessions)) = (operation.access, &self.context.sessions) {
            return sessions
                .find(head, directory)
                .map(|found| Some(found.caller))
                .ok_or(AdminError::NoSession(NO_SESSION));
        }
        match operation.access {
            Access::Public | Access::Redirected | Access::Signed => Ok(None),
            Access::Scraper if credentials.is_scraper(head) => Ok(None),
            Access::Scraper => Err(AdminError::NotScraper(credentials.scrape_token.is_some())),
            Access::Roles(_) => {
                if has_basic_credential(head) {
                    check_root_attempts(&self.context.throttle, client)?;
                }
                credentials.authenticate(head, directory).map(Some)
            }
        }
    }

    /// Counts a wrong credential, and waits until the response may be sent. Returns the error to send.
    async fn throttle_failure(&self, head: &RequestHead, client: IpAddr, error: &AdminError) -> AdminError {
        let failed =
            if has_basic_credential(head) { FailedCredential::Root } else { FailedCredential::Other };
        match delay_failure(&self.context.throttle, client, failed).await {
            Ok(()) => error.clone(),
            Err(refused) => refused,
        }
    }

    /// Runs the handler of a route. A change is in the audit trail before it begins, and its outcome before the
    /// response. An access is in the audit trail before the response.
    async fn run_handler(&self, route: &Route, call: Call<'_, '_>) -> Result<Reply, AdminError> {
        let audit = call.audit;
        match route.operation.recorded_as {
            None => handle(route, call).await,
            Some(AuditKind::Read) => {
                let reply = handle(route, call).await?;
                if let Some(log) = self.context.audit().filter(|log| log.data_events() >= DataEvents::All) {
                    audit.record_read(log).await?;
                }
                Ok(reply)
            }
            Some(AuditKind::Access) => {
                let log = Arc::clone(call.audit_log()?);
                let result = handle(route, call).await;
                audit.record_access_outcome(&log, result).await
            }
            Some(kind) => {
                let log = call.audit_log()?;
                let intent = audit.record_intent(log, kind).await?;
                let mut result = handle(route, call).await;
                let outcome = result.as_mut().map(|reply| std::mem::take(&mut reply.record));
                audit.record_outcome(intent, outcome.map_err(|error| &*error)).await;
                result
            }
        }
    }
}

/// Checks query and body, then runs the handler.
async fn handle(route: &Route, mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.check(&route.operation).await?;
    (route.handler)(call).await
}

impl Reads for AdminService {
    fn read<'a>(
        &'a self,
        head: &'a RequestHead,
        request_id: &'a str,
        client: IpAddr,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + 'a>> {
        Box::pin(async move {
            let (route, segments) = find(self.surface(), head.method(), head.path()).route?;
            if !matches!(route.operation.access, Access::Roles(_)) || route.operation.name == READ_BATCH {
                return Err(AdminError::invalid("this route cannot be part of a batch"));
            }
            let incoming = Incoming { head, generated_id: request_id, client, body: None };
            self.call_route(route, segments, request_id, incoming, &mut None).await
        })
    }
}

impl Service for AdminService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        if PublicLinks::is_share_path(request.head.path())
            && let Some(open) = &self.context.open
        {
            return open.links.answer_share(request, body).await;
        }
        let client = request.client;
        self.answer(Incoming { head: &request.head, generated_id: &request.id, client, body: Some(body) })
            .await
    }

    /// Shares are for visitors without an account.
    fn is_unsigned(&self, request: &Request) -> bool {
        PublicLinks::is_share_path(request.head.path())
    }

    fn reject(&self, reason: Rejection, id: &str) -> Response {
        let mut response = respond(Err(rejection_error(reason)), "", id);
        response.close = true;
        response
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        let path = exchange.request.filter(|_| paths_are_logged()).map(|request| request.head.path());
        let segments = path.and_then(|path| match_path(exchange.response.route, path)).unwrap_or_default();
        let [bucket, key] = ["bucket", "key"].map(|name| decode(segments.get(name).unwrap_or_default()));
        let resource = match (&bucket, &key) {
            (Ok(bucket), Ok(key)) => {
                let (bucket, key) = recordable_names(bucket, key);
                Some(LoggedResource { bucket, key })
            }
            // A path that cannot be decoded was refused, and names nothing.
            _ => None,
        };
        log_exchange(Plane::Management, exchange, resource);
    }
}

/// Returns the error for a connection without a valid request.
fn rejection_error(reason: Rejection) -> AdminError {
    match reason {
        Rejection::Head(HeadError::BadRequest(what)) => {
            AdminError::Invalid(StatusCode::BAD_REQUEST, format!("the request is malformed: {what}"))
        }
        Rejection::Head(error) => AdminError::Invalid(error.status(), error.to_string()),
        Rejection::HeadTimeout | Rejection::BodyTimeout => {
            AdminError::Invalid(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time".to_owned())
        }
        Rejection::PlainHttp => {
            AdminError::invalid("this port requires TLS: the URL must begin with https".to_owned())
        }
        Rejection::Panic => AdminError::Internal,
        Rejection::TooManyConnections => AdminError::NotReady("too many connections are open"),
    }
}

#[cfg(test)]
mod tests;
