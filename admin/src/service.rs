//! The management plane on one executor: from a request head to an answer.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use cairn_engine::Engine;
use cairn_http1::{HeadError, RequestHead};
use cairn_net::{Drain, Exchange, Rejection, Request, RequestBody, Response, Service};
use cairn_observe::{AuditLog, Plane, client_request_id, log_exchange};
use http::{Method, StatusCode};

use crate::access::{Caller, ManagementCredentials};
use crate::audit;
use crate::call::Call;
use crate::error::AdminError;
use crate::metrics;
use crate::readiness::{Readiness, SubsystemState};
use crate::reply::{BodyWanted, Reply, respond};
use crate::routes::{Access, Handler, Route, find};
use crate::storage;
use crate::system;
use crate::verify::{self, Verifications};

/// What the plane needs.
pub struct AdminOptions {
    /// What callers are checked against.
    pub credentials: ManagementCredentials,
    /// What `/ready` looks at.
    pub readiness: Box<dyn Readiness>,
    /// The store on this executor; without one, routes that need it are answered 503.
    pub engine: Option<Rc<Engine>>,
    /// The audit trail; without one, its route is answered 503 and nothing is recorded.
    pub audit: Option<Arc<AuditLog>>,
    /// The verifications that run, on all executors.
    pub verifications: Verifications,
    /// The signal to stop: what takes long ends early.
    pub drain: Drain,
}

/// The management plane on one executor.
pub struct AdminService {
    options: AdminOptions,
    /// What the last look at the subsystems found: the log hears of changes, not of every look.
    was_ready: Cell<bool>,
}

impl AdminService {
    /// A service on this executor.
    #[must_use]
    pub fn new(options: AdminOptions) -> Rc<Self> {
        Rc::new(Self { options, was_ready: Cell::new(true) })
    }

    /// The path of every request.
    async fn answer(
        &self,
        head: &RequestHead,
        made_id: &str,
        peer: IpAddr,
        body: Option<&mut RequestBody<'_>>,
    ) -> Response {
        let mut sent_ids = head.header_values("x-request-id");
        let sent_id = sent_ids.next().filter(|_| sent_ids.next().is_none());
        let id = sent_id.and_then(client_request_id).unwrap_or(made_id);
        let found = find(head.method(), head.path());
        let result = match found.route {
            Ok((route, segments)) => self.admit(route, Call { head, segments, body }).await,
            Err(refusal) => Err(refusal),
        };
        if let (Err(AdminError::Unauthenticated), Some(log)) = (&result, &self.options.audit) {
            audit::refused(log, head, found.pattern, id, peer);
        }
        let body_wanted =
            if *head.method() == Method::HEAD { BodyWanted::LengthOnly } else { BodyWanted::Yes };
        respond(result, found.pattern, id, body_wanted)
    }

    async fn admit(&self, route: &Route, call: Call<'_, '_, '_>) -> Result<Reply, AdminError> {
        let credentials = &self.options.credentials;
        let caller = match route.access {
            Access::Public => None,
            Access::Scraper if credentials.is_scraper(call.head) => None,
            Access::Scraper => return Err(AdminError::Unauthenticated),
            Access::Authenticated => Some(credentials.authenticate(call.head)?),
        };
        self.handle(route.handler, caller.as_ref(), call).await
    }

    async fn handle(
        &self,
        handler: Handler,
        caller: Option<&Caller>,
        call: Call<'_, '_, '_>,
    ) -> Result<Reply, AdminError> {
        let AdminOptions { verifications, drain, .. } = &self.options;
        match handler {
            Handler::Health => system::health(),
            Handler::Ready => system::ready(&self.look(), self.options.readiness.public_reason()),
            Handler::SystemInfo => system::system_info(&self.look()),
            // The table lets nobody in here who is not known.
            Handler::Session => system::session(caller.ok_or(AdminError::Unauthenticated)?),
            Handler::AuditEvents => {
                let log = self.options.audit.as_ref();
                audit::events(call.head, log.ok_or(AdminError::NotReady("the store is not open"))?).await
            }
            Handler::Metrics => Ok(metrics::text(self.engine()?.store())),
            Handler::SystemMetrics => metrics::json(self.engine()?.store()),
            Handler::VerifyObject => verify::object(call, self.engine()?, verifications, drain).await,
            Handler::VerifyBucket => verify::bucket(call, self.engine()?, verifications, drain).await,
            Handler::VerifyProgress => verify::progress(verifications),
            Handler::StorageStatus => storage::status(&call, self.engine()?.store()),
            Handler::StorageUsage => storage::usage(&call, self.engine()?.store()),
            Handler::StorageInspect => storage::inspect(call, self.engine()?.store(), drain).await,
            Handler::StorageRepair => storage::repair(call, self.engine()?.store(), drain).await,
        }
    }

    fn engine(&self) -> Result<&Rc<Engine>, AdminError> {
        self.options.engine.as_ref().ok_or(AdminError::NotReady("the store is not open"))
    }

    /// Looks at the subsystems and logs when readiness has changed, with the reasons, which the public answer
    /// leaves out.
    fn look(&self) -> Vec<SubsystemState> {
        let subsystems = self.options.readiness.look();
        let is_ready = subsystems.iter().all(|subsystem| subsystem.state.is_ok());
        if self.was_ready.replace(is_ready) != is_ready {
            for (name, reason) in
                subsystems.iter().filter_map(|one| one.state.as_ref().err().map(|why| (one.name, why)))
            {
                tracing::warn!(target: "service", subsystem = name, reason, "not ready");
            }
            if is_ready {
                tracing::info!(target: "service", "ready again");
            }
        }
        subsystems
    }
}

impl Service for AdminService {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        self.answer(&request.head, &request.id, request.peer.ip(), Some(body)).await
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
        Rejection::Panic => AdminError::Internal,
        Rejection::TooManyConnections => AdminError::NotReady("too many connections are open"),
    }
}

#[cfg(test)]
mod tests;
