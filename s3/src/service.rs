//! The service of one executor: from a request head to an answer.

use crate::account::REGION;
use crate::audit::RequestTrail;
use crate::auth;
use crate::call::Call;
use crate::cors;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::fields::Fields;
use crate::hosts::OwnHosts;
use crate::lock_headers;
use crate::operations::{Handling, Operation};
use crate::ops;
use crate::query::Query;
use crate::reply::{self, AnswerIds, Asked, Reply};
use crate::routing::{Route, route};
use crate::target::{Resource, Target};
use crate::unsupported;
use cairn_engine::Engine;
use cairn_http1::{HeadError, Method};
use cairn_identity::{Authentication, Authenticator, Credentials};
use cairn_model::Clock;
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, Service};
use cairn_observe::{AuditLog, Plane, log_exchange};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// What a service needs beside the engine.
pub struct S3Options {
    /// Finds the secrets of access keys, on this executor alone.
    pub credentials: Box<dyn Credentials>,
    /// Where refusals and failures are recorded.
    pub audit: Arc<AuditLog>,
    /// Gives the time that signatures are judged by.
    pub clock: Arc<dyn Clock>,
    /// The server's own host names: `server.base_hosts`, and the host of `server.s3_bind` as it was written. A port
    /// counts for nothing. A host with a label in front of one of them is virtual-hosted style and refused.
    pub base_hosts: Vec<String>,
    /// The address that the listener is bound to; it counts as one of the base hosts.
    pub bound_address: SocketAddr,
}

/// The S3 data plane on one executor.
pub struct S3Service {
    engine: Rc<Engine>,
    audit: Arc<AuditLog>,
    authenticator: Authenticator<Box<dyn Credentials>>,
    clock: Arc<dyn Clock>,
    own_hosts: OwnHosts,
    /// `x-amz-id-2`: tells which store answered.
    host_id: String,
}

/// How far a request got, for its answer, its log line and the audit trail.
#[derive(Default)]
struct Progress {
    target: Option<Target>,
    /// The operation's name, or the method where there is none.
    operation: &'static str,
    /// The same, for the metrics.
    counted_operation: &'static str,
    authentication: Option<Authentication>,
    /// Who sent the request could not be proven.
    is_denied: bool,
}

impl Progress {
    fn route_pattern(&self) -> &'static str {
        self.target.as_ref().map_or("", |target| target.resource().pattern())
    }
}

impl S3Service {
    /// A service over `engine`.
    #[must_use]
    pub fn new(engine: Rc<Engine>, options: S3Options) -> Rc<Self> {
        let S3Options { credentials, audit, clock, base_hosts, bound_address } = options;
        let own_hosts = OwnHosts::new(base_hosts, bound_address);
        let host_id = engine.store().id().to_hex();
        let authenticator = Authenticator::new(credentials);
        Rc::new(Self { engine, audit, authenticator, clock, own_hosts, host_id })
    }

    /// The path of every request.
    async fn answer(
        &self,
        request: &Request,
        body: &mut RequestBody<'_>,
        progress: &mut Progress,
    ) -> S3Result<Reply> {
        let head = &request.head;
        let target = &*progress.target.insert(Target::parse(head.path())?);
        let query = Query::parse(head.query())?;
        let headers: Vec<(&str, &[u8])> = head.headers().collect();
        let fields = Fields::new(&headers, &query);
        self.refuse_virtual_hosts(fields, request.local)?;

        let route = route(head.method(), target.resource(), &query, fields);
        progress.operation = route.operation_name();
        progress.counted_operation = route.counted_operation();
        if let Route::Operation(Operation { handling: Handling::Preflight, .. }) = route {
            fields.check_single()?;
            return cors::answers::preflight(&self.engine, target, head);
        }
        let now = self.clock.now();
        let authenticated = auth::authenticate(&self.authenticator, head, fields, now);
        // A kind of signature that is not implemented says nothing of who sent it.
        let authentication = authenticated.inspect_err(|error| progress.is_denied = error.status() < 500)?;
        progress.authentication = Some(authentication.clone());
        fields.check_single()?;
        // Before any look at lengths: a client that sends aws-chunked must not be told of a missing length.
        unsupported::check(fields, head.framing())?;
        if let Some(refusal) = route.refusal(head.method()) {
            return Err(refusal);
        }
        let Route::Operation(operation) = route else {
            return Err(S3Error::internal("a route without an operation was not refused"));
        };
        let Handling::Built(handler, action) = operation.handling else {
            return Err(S3Error::internal("an operation that is not built was not refused"));
        };
        lock_headers::check_places(fields, operation.name)?;
        unsupported::check_places(fields, handler)?;
        auth::authorize(&authentication.principal, action, target)?;
        auth::authorize_condition(&authentication.principal, handler, fields, target)?;
        let call = Call {
            engine: &self.engine,
            audit: &self.audit,
            request,
            operation: operation.name,
            head,
            fields,
            query: &query,
            target,
            authentication: &authentication,
            now,
        };
        let carried_out = ops::carry_out(handler, &call, body).await;
        carried_out
            .map_err(|error| auth::hide_missing(&authentication.principal, target.bucket_text(), error))
    }

    fn refuse_virtual_hosts(&self, fields: Fields<'_>, local: SocketAddr) -> S3Result<()> {
        let Some(host) = fields.text("host") else { return Ok(()) };
        if self.own_hosts.is_virtual_hosted(host, local) {
            return Err(S3Error::not_implemented(
                "Virtual-hosted-style addressing is not implemented: set the client to path-style addressing \
                 (force_path_style, addressing_style = path).",
            ));
        }
        Ok(())
    }

    /// Leaves a refusal for who asked, or a failure of what is stored, in the audit trail. What is missing is neither, also
    /// where who asked may not know it.
    fn record(&self, request: &Request, progress: &Progress, error: &S3Error) {
        let Progress { target, operation, authentication, is_denied, .. } = progress;
        let is_denied = *is_denied || (error.denied_because().is_some() && !error.hides_a_miss());
        if !is_denied && !error.is_internal() {
            return;
        }
        let trail =
            RequestTrail::new(&self.audit, request, target.as_ref(), authentication.as_ref(), operation);
        match error.failure_cause() {
            Some(cause) if !is_denied => trail.failed(cause),
            _ => trail.refused(error),
        }
    }

    fn ids<'a>(&'a self, request: &'a str) -> AnswerIds<'a> {
        AnswerIds { request, host: &self.host_id }
    }
}

impl Service for S3Service {
    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        let mut progress = Progress::default();
        let result = self.answer(request, body, &mut progress).await;
        let asked = Asked {
            method: Some(request.head.method()),
            path: request.head.path(),
            target: progress.target.as_ref(),
            route: progress.route_pattern(),
            operation: progress.counted_operation,
        };
        let mut response = match result {
            Ok(reply) => reply::success(reply, asked, self.ids(&request.id)),
            Err(error) => {
                if let Some(cause) = error.failure_cause() {
                    // The request log has the status alone; this is what an operator finds under the request's id.
                    tracing::error!(target: "service::s3", request_id = request.id, code = error.code(), cause, "a request failed");
                }
                self.record(request, &progress, &error);
                reply::failure(&with_region(error, asked), asked, self.ids(&request.id))
            }
        };
        if *request.head.method() != Method::OPTIONS {
            cors::answers::write_actual(&self.engine, asked.target, &request.head, &mut response.head);
        }
        response
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        let error = rejection_error(&reason);
        let asked = Asked { method: None, path: "", target: None, route: "", operation: "" };
        reply::failure(&error.closing(), asked, self.ids(request_id))
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Data, exchange);
    }
}

/// A refused HEAD of a bucket still tells the region (AWS: HeadBucket), which is the same for all.
fn with_region(error: S3Error, asked: Asked<'_>) -> S3Error {
    let head_bucket = asked.method == Some(&Method::HEAD)
        && asked.target.is_some_and(|target| target.resource() == Resource::Bucket);
    if head_bucket && error.status() == 403 { error.header("x-amz-bucket-region", REGION) } else { error }
}

/// What is answered when there is no request to answer.
pub(crate) fn rejection_error(reason: &Rejection) -> S3Error {
    match reason {
        Rejection::Head(HeadError::BadRequest(what)) => S3Error::with_message(
            ErrorCode::BadRequest,
            format!("The request could not be understood: {what}."),
        ),
        Rejection::Head(HeadError::TooLarge) => ErrorCode::RequestHeaderSectionTooLarge.into(),
        Rejection::Head(HeadError::VersionNotSupported) => ErrorCode::HTTPVersionNotSupported.into(),
        Rejection::Head(HeadError::TransferCodingNotSupported) => {
            S3Error::not_implemented("Transfer codings are not implemented: send a Content-Length.")
        }
        Rejection::Head(HeadError::ExpectationFailed) => ErrorCode::ExpectationFailed.into(),
        Rejection::HeadTimeout | Rejection::BodyTimeout => ErrorCode::RequestTimeout.into(),
        Rejection::PlainHttp => S3Error::with_message(
            ErrorCode::InvalidRequest,
            "This port speaks TLS: the address must begin with https.",
        ),
        Rejection::Panic => ErrorCode::InternalError.into(),
        Rejection::TooManyConnections => ErrorCode::SlowDown.into(),
    }
}
