//! The S3 service of one executor: turns a request head into a response.

use crate::access::account::REGION;
use crate::access::audit::AuditContext;
use crate::access::auth::{self, Requester, RequiredRights};
use crate::access::public::{self, PublicRequest};
use crate::access::recording::{Effect, RecordKind, Recording};
use crate::body::check_unused_body;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::cors;
use crate::errors::{ErrorCode, S3Error, S3Result, rejection_error};
use crate::forms::Form;
use crate::forms::boundary::is_form;
use crate::forms::reading::not_a_form;
use crate::headers::{encryption, write_conditions};
use crate::misplaced_headers;
use crate::operations::{Handling, Implementation, Input, Operation};
use crate::refusals::{Refusal, naming_mode};
use crate::reply::{self, Reply, RequestContext, ResponseIds};
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::sosapi;
use crate::request::target::{Resource, Target};
use crate::request::unsupported_headers;
use crate::request::virtual_hosts::{HostBucket, ServerHosts};
use crate::routing::{Route, route};
use cairn_engine::Engine;
use cairn_http1::{Method, RequestHead};
use cairn_identity::policy::Action;
use cairn_identity::{
    AuthError, Authentication, Authenticator, CredentialThrottle, Credentials, PayloadDigest, Principal,
};
use cairn_model::{Clock, Timestamp};
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, Service, timeout};
use cairn_observe::metrics::PUBLIC_REQUESTS;
use cairn_observe::{
    AuditLog, LoggedResource, Plane, RefusedRecorder, RefusingSetting, log_exchange, paths_are_logged,
};
use cairn_sharing::{LinkKind, PublicLinks};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

mod form;

/// The options of a service, in addition to the engine.
pub struct S3Options {
    /// Looks up the secrets of access keys. Used on this executor only.
    pub credentials: Box<dyn Credentials>,
    /// Throttles wrong credentials. Shared by all executors and both planes.
    pub throttle: CredentialThrottle,
    /// The audit trail of refusals and failures.
    pub audit: Arc<AuditLog>,
    /// Keeps the refused requests of this executor.
    pub refused: RefusedRecorder,
    /// The time against which signatures are checked.
    pub clock: Arc<dyn Clock>,
    /// The server's host names: `server.base_hosts`, and the host of `server.s3_bind` as it was written. Ports are
    /// ignored. A host with labels in front of one of them is virtual-hosted style, which the mode `strict` refuses.
    pub base_hosts: Vec<String>,
    /// The compatibility mode: how much of S3 is implemented.
    pub compatibility: Compatibility,
    /// Whether the mode `extended` accepts Signature Version 2 in presigned URLs and forms.
    pub accepts_signature_v2: bool,
    /// Whether the rules of public access have an effect.
    pub public_access: bool,
    /// Whether the mode `extended` answers the objects of the Smart Object Storage API.
    pub answers_sosapi: bool,
    /// Answers visitors of embeds on this executor.
    pub links: Option<Rc<PublicLinks>>,
    /// The address that the listener is bound to. It is one of the base hosts too.
    pub bound_address: SocketAddr,
}

/// The S3 data plane on one executor.
pub struct S3Service {
    engine: Rc<Engine>,
    audit: Arc<AuditLog>,
    authenticator: Rc<Authenticator<Box<dyn Credentials>>>,
    throttle: CredentialThrottle,
    refused: RefusedRecorder,
    clock: Arc<dyn Clock>,
    links: Option<Rc<PublicLinks>>,
    compatibility: Compatibility,
    has_system_objects: bool,
    server_hosts: ServerHosts,
    /// `x-amz-id-2`: identifies the store.
    host_id: String,
    /// The name of root in the request log. Each executor has its own, so that cores share no reference count.
    public_access: bool,
    root_name: Arc<str>,
    anonymous_name: Arc<str>,
}

/// The operation that a browser's form asks for.
const POST_FORM_OPERATION: &str = "PostObject";
/// The operation that every `POST` to the root of the service is.
const ASSUME_ROLE_OPERATION: &str = "AssumeRole";

const PATH_STYLE_ONLY: &str = "Virtual-hosted-style addressing is not implemented: set the client to path-style addressing \
                               (force_path_style, addressing_style = path).";
const EXTENDED_VIRTUAL_HOSTS: &str =
    "Set the client to path-style addressing, or set s3.compatibility = \"extended\" on the server.";
const NO_BUCKET_BEFORE_ADDRESS: &str = "A bucket cannot be named in front of an IP address: set the client to path-style \
                                        addressing, or use a name of server.base_hosts.";

/// The facts that became known about a request, for its response, its log line and the audit trail.
#[derive(Default)]
struct Progress {
    target: Option<Target>,
    /// The object that a form names.
    form_target: Option<Target>,
    /// The operation's name; empty until the request is routed.
    operation: &'static str,
    /// The same, for the metrics.
    counted_operation: &'static str,
    authentication: Option<Authentication>,
    /// The client could not be authenticated.
    authentication_failed: bool,
    /// The audit record of the change says that it failed.
    is_failure_recorded: bool,
}

impl Progress {
    /// The bucket and key that the request is about, as far as they are known.
    fn subject(&self) -> Option<&Target> {
        self.form_target.as_ref().or(self.target.as_ref())
    }

    fn route_pattern(&self) -> &'static str {
        self.target.as_ref().map_or("", |target| target.resource().pattern())
    }
}

/// An authenticated request.
struct AuthenticatedRequest<'a> {
    route: Route,
    target: &'a Target,
    query: &'a Query<'a>,
    fields: Fields<'a>,
    authentication: &'a Authentication,
    /// The form, if the request is one.
    form: Option<&'a Form>,
    now: Timestamp,
}

impl S3Service {
    /// Creates a service that stores in `engine`.
    #[must_use]
    pub fn new(engine: Rc<Engine>, options: S3Options) -> Rc<Self> {
        let S3Options {
            credentials,
            throttle,
            audit,
            refused,
            clock,
            base_hosts,
            compatibility,
            accepts_signature_v2,
            public_access,
            answers_sosapi,
            links,
            bound_address,
        } = options;
        let server_hosts = ServerHosts::new(base_hosts, bound_address);
        let host_id = engine.store().id().to_hex();
        let authenticator = Authenticator::new(credentials);
        let authenticator = Rc::new(match compatibility {
            Compatibility::Strict => authenticator,
            Compatibility::Extended if accepts_signature_v2 => {
                authenticator.with_chunked_bodies().with_version_2()
            }
            Compatibility::Extended => authenticator.with_chunked_bodies(),
        });
        let (root_name, anonymous_name) = (Principal::ROOT_NAME.into(), Principal::ANONYMOUS_NAME.into());
        Rc::new(Self {
            engine,
            audit,
            authenticator,
            throttle,
            refused,
            clock,
            links,
            compatibility,
            has_system_objects: answers_sosapi && compatibility == Compatibility::Extended,
            server_hosts,
            host_id,
            public_access,
            root_name,
            anonymous_name,
        })
    }

    /// Answers a request. Every request takes this path.
    async fn answer(
        &self,
        request: &Request,
        body: &mut RequestBody<'_>,
        progress: &mut Progress,
    ) -> S3Result<Reply> {
        let head = &request.head;
        let host_bucket = self.host_bucket(request);
        let target = &*progress.target.insert(self.target_below(host_bucket, head.path())?);
        let query = Query::parse(head.query())?;
        let headers: Vec<(&str, &[u8])> = head.headers().collect();
        let fields = Fields::new(&headers, &query);
        self.refuse_virtual_hosts(host_bucket)?;

        let route = route(self.compatibility, head.method(), target.resource(), &query, fields);
        progress.operation = route.operation_name();
        progress.counted_operation = route.counted_operation();
        if let Route::Operation(Operation { handling: Handling::Preflight, .. }) = route {
            fields.check_single()?;
            return cors::responses::preflight(&self.engine, self.compatibility, target, head);
        }
        if let Route::Operation(Operation { name: POST_FORM_OPERATION, .. }) = route {
            let is_form = fields.get("content-type").is_some_and(is_form);
            match route.refusal(head.method()) {
                // A form has its signature in the body, so it would be refused as unsigned otherwise.
                Some(refusal) if is_form => return Err(refusal),
                None if is_form => {
                    return Box::pin(self.answer_form(request, body, route, fields, progress)).await;
                }
                // Also without a signature, as on AWS.
                None => return Err(not_a_form()),
                Some(_) => {}
            }
        }
        if let Route::Operation(Operation { name: ASSUME_ROLE_OPERATION, .. }) = route {
            // Clients of STS sign for another service, or not at all.
            return Err(route.refusal(head.method()).unwrap_or_else(|| ErrorCode::NotImplemented.into()));
        }
        let now = self.clock.now();
        let root_attempts = self.throttle.root_attempts(request.client, request.started);
        let bucket_in_host = target.is_virtual_hosted().then(|| target.bucket_text());
        let authenticated =
            auth::authenticate(&self.authenticator, head, fields, bucket_in_host, now, root_attempts);
        let authentication = match authenticated {
            Ok(authentication) => authentication,
            Err(AuthError::NoAuthentication) if self.is_public(request, &route, target, &query) => {
                public::check_parameters(&query)?;

                Authentication::anonymous(now)
            }
            Err(error) => return Err(self.throttle_failure(request, error, progress).await),
        };
        progress.authentication = Some(authentication.clone());
        let authentication = &authentication;
        let asked =
            AuthenticatedRequest { route, target, query: &query, fields, authentication, form: None, now };
        self.carry_out(request, body, asked, &mut progress.is_failure_recorded).await
    }

    /// Returns the request, if it is one that the rules of public access may allow.
    fn public_request<'a>(
        &'a self,
        implementation: Implementation,
        target: &'a Target,
        query: &'a Query<'_>,
    ) -> Option<PublicRequest<'a>> {
        let may_be_public = self.public_access && implementation.accepts(Input::Public);
        may_be_public.then(|| PublicRequest::new(self.engine.store(), target, query)).flatten()
    }

    /// Returns whether a rule of public access allows an unsigned request, and counts it.
    fn is_public(&self, request: &Request, route: &Route, target: &Target, query: &Query<'_>) -> bool {
        let Some(implementation) = route.implementation() else { return false };
        let Some(public) = self.public_request(implementation, target, query) else { return false };
        let client = Requester::anybody(request.client, public);
        let required = required_rights(implementation, Fields::new(&[], query), None);
        let is_allowed = auth::authorize_request(client, required, target).is_ok();
        PUBLIC_REQUESTS.count(is_allowed);
        is_allowed
    }

    /// Checks what an authenticated client asks for, and carries it out. `is_failure_recorded` becomes true if the audit
    /// record says that it failed.
    async fn carry_out(
        &self,
        request: &Request,
        body: &mut RequestBody<'_>,
        asked: AuthenticatedRequest<'_>,
        is_failure_recorded: &mut bool,
    ) -> S3Result<Reply> {
        let AuthenticatedRequest { route, target, query, fields, authentication, form, now } = asked;
        let head = &request.head;
        fields.check_single()?;
        // Before any check of lengths: a client that sends aws-chunked must not be told that a length is missing.
        self.check_supported(fields, head, (&route, target), authentication.payload)?;
        if let Some(refusal) = route.refusal(head.method()) {
            return Err(refusal);
        }
        let Route::Operation(
            operation @ Operation { name, handling: Handling::Implemented(implementation), .. },
        ) = route
        else {
            unreachable!("preflights were answered, and all other routes were refused");
        };
        misplaced_headers::check(fields, name, *implementation)?;
        encryption::check(fields, self.engine.store().encrypts_at_rest())?;
        let required = required_rights(*implementation, fields, form);
        let public = self.public_request(*implementation, target, query);
        let client = Requester { principal: &authentication.principal, address: request.client, public };
        let permission = auth::authorize_request(client, required, target)?;
        if operation.effect() == Effect::ObjectChange {
            sosapi::check_change(self.has_system_objects, target.key_text())?;
        }
        if !implementation.accepts(Input::Body) {
            check_unused_body(authentication.payload, body).await?;
        }
        let may_bypass = implementation.accepts(Input::GovernanceBypass);
        let kind = RecordKind::of(operation.effect(), may_bypass, fields, self.audit.data_events());
        let context = || AuditContext::new(&self.audit, request, Some(target), Some(authentication), name);
        let recording = Recording::begin(kind, context).await?;
        let call = Call {
            engine: &self.engine,
            authenticator: &self.authenticator,
            required,
            public,
            public_access: self.public_access,
            permission: Cell::new(permission),
            compatibility: self.compatibility,
            has_system_objects: self.has_system_objects,
            audit: &self.audit,
            recording: &recording,
            request,
            operation: name,
            head,
            fields,
            query,
            target,
            authentication,
            form,
            now,
        };
        let answered = implementation.handler.answer(&call, body).await;
        if let Some(begun) = recording.take() {
            let outcome = answered.as_ref().map(|reply| &reply.head);
            *is_failure_recorded = begun.end(outcome).await?;
        }
        answered
            .map_err(|error| auth::hide_missing(client, target.bucket_text(), naming_upload(error, query)))
    }

    /// Refuses headers and encodings of the body that are not implemented.
    fn check_supported(
        &self,
        fields: Fields<'_>,
        head: &RequestHead,
        (route, target): (&Route, &Target),
        payload: PayloadDigest,
    ) -> S3Result<()> {
        let accepted = route.accepted_body(payload);
        let creates_object = route.implementation().is_some_and(|found| found.accepts(Input::NewObject));
        let checked = unsupported_headers::check(self.compatibility, fields, head.framing(), accepted)
            .and_then(|()| public::check_acl(self.engine.store(), fields, creates_object, target));
        checked.map_err(|error| match (error.code(), route.operation_name()) {
            ("AccessControlListNotSupported", "CreateBucket") => {
                ErrorCode::InvalidBucketAclWithObjectOwnership.into()
            }
            _ => error,
        })
    }

    /// Counts a wrong credential, and waits until the response may be sent. Returns the error to send.
    async fn throttle_failure(
        &self,
        request: &Request,
        error: AuthError,
        progress: &mut Progress,
    ) -> S3Error {
        // An unsupported kind of signature says nothing about the client.
        progress.authentication_failed = !matches!(error, AuthError::NotImplemented(_));
        let Some(failed) = error.failed_credential() else { return error.into() };
        let Some(delayed) = self.throttle.record_failure(request.client, failed, Instant::now()) else {
            return S3Error::with_message(
                ErrorCode::SlowDown,
                "Too many wrong signatures are being answered; try again later.".to_owned(),
            );
        };
        if !delayed.delay().is_zero() {
            let _: Option<()> = timeout(delayed.delay(), std::future::pending()).await;
        }
        error.into()
    }

    /// Returns the bucket that the host names.
    fn host_bucket<'r>(&self, request: &'r Request) -> Option<HostBucket<'r>> {
        let host = request.head.header("host")?;
        self.server_hosts.bucket_in(std::str::from_utf8(host).unwrap_or("\u{fffd}"), request.local)
    }

    /// Parses the bucket and key that host and path name.
    ///
    /// # Errors
    /// `InvalidURI`.
    fn target_below(&self, host_bucket: Option<HostBucket<'_>>, path: &str) -> S3Result<Target> {
        match (self.compatibility, host_bucket) {
            (Compatibility::Extended, Some(HostBucket::Named(bucket))) => {
                Target::parse_virtual_hosted(bucket, path)
            }
            _ => Target::parse(path),
        }
        .map(|target| {
            let has_token = self.links.as_ref().is_some_and(|links| links.names_link(target.key_text()));
            target.with_token(has_token)
        })
    }

    /// Refuses hosts that name a bucket, unless [`Self::target_below`] takes them for that.
    fn refuse_virtual_hosts(&self, host_bucket: Option<HostBucket<'_>>) -> S3Result<()> {
        match (self.compatibility, host_bucket) {
            (_, None) | (Compatibility::Extended, Some(HostBucket::Named(_))) => Ok(()),
            (Compatibility::Strict, Some(HostBucket::Named(_))) => {
                Err(S3Error::not_implemented(PATH_STYLE_ONLY)
                    .advised(EXTENDED_VIRTUAL_HOSTS)
                    .setting_at(RefusingSetting::Compatibility))
            }
            (Compatibility::Strict, Some(HostBucket::OfAddress)) => {
                Err(S3Error::not_implemented(PATH_STYLE_ONLY))
            }
            (Compatibility::Extended, Some(HostBucket::OfAddress)) => {
                Err(S3Error::not_implemented(NO_BUCKET_BEFORE_ADDRESS).setting_at(RefusingSetting::BaseHosts))
            }
        }
    }

    /// Returns the kind of link that the request is for. A key of a bucket that the host names may look like the path of one.
    fn link_kind(&self, request: &Request) -> Option<LinkKind> {
        let path = request.head.path();
        let kind = if PublicLinks::is_embed_path(path) {
            LinkKind::Embed
        } else if PublicLinks::is_misplaced_share_path(path) {
            LinkKind::Share
        } else {
            return None;
        };
        let is_key = self.compatibility == Compatibility::Extended
            && matches!(self.host_bucket(request), Some(HostBucket::Named(_)));
        (!is_key).then_some(kind)
    }

    /// Audits denied requests and storage failures. A 404 is neither, even if it is hidden as 403.
    fn record(&self, request: &Request, progress: &Progress, error: &S3Error) {
        let Progress { operation, authentication, authentication_failed, is_failure_recorded, .. } = progress;
        let is_denied =
            *authentication_failed || (error.denied_because().is_some() && !error.hides_missing());
        if !is_denied && (!error.is_internal() || *is_failure_recorded) {
            return;
        }
        let audit =
            AuditContext::new(&self.audit, request, progress.subject(), authentication.as_ref(), operation);
        match error.failure_cause() {
            Some(cause) if !is_denied => audit.failed(cause),
            _ => audit.refused(error),
        }
    }

    /// Keeps a refused request for the operator, with what would help.
    fn record_refusal(&self, request: &Request, progress: &Progress, error: &S3Error) {
        let Progress { operation, authentication, .. } = progress;
        let authentication = authentication.as_ref();
        let principal = authentication.map(|found| self.logged_name(&found.principal));
        let (target, operation, now) = (progress.subject(), *operation, self.clock.now());
        Refusal {
            request,
            target,
            operation,
            authentication,
            principal,
            error,
            now,
            compatibility: self.compatibility,
            engine: &self.engine,
            authenticator: &self.authenticator,
        }
        .record(&self.refused);
    }

    fn logged_name(&self, principal: &Principal) -> Arc<str> {
        match principal {
            Principal::Root => Arc::clone(&self.root_name),
            Principal::Account(account) => Arc::clone(&account.audit_name),
            Principal::Anonymous => Arc::clone(&self.anonymous_name),
        }
    }

    fn ids<'a>(&'a self, request: &'a str) -> ResponseIds<'a> {
        ResponseIds { request, host: &self.host_id }
    }
}

/// Names the upload in errors about it and its parts, as AWS does.
fn naming_upload(error: S3Error, query: &Query<'_>) -> S3Error {
    let is_about_upload = matches!(error.code(), "NoSuchUpload" | "InvalidPart" | "InvalidPartOrder");
    let is_named = error.elements().iter().any(|(name, _)| *name == "UploadId");
    match query.get("uploadId") {
        Some(id) if is_about_upload && !is_named => error.element("UploadId", id),
        _ => error,
    }
}

impl Service for S3Service {
    /// Embeds are for visitors without an account, and public objects for anybody.
    fn is_unsigned(&self, request: &Request) -> bool {
        public::is_unsigned(&request.head) || (self.links.is_some() && self.link_kind(request).is_some())
    }

    async fn call(&self, request: &Request, body: &mut RequestBody<'_>) -> Response {
        if let Some(links) = &self.links
            && let Some(kind) = self.link_kind(request)
        {
            let mut response = match kind {
                LinkKind::Embed => links.answer_embed(request).await,
                LinkKind::Share => links.refuse_misplaced_share(request),
            };
            reply::write_common(&mut response.head, self.ids(&request.id));
            return response;
        }
        let mut progress = Progress::default();
        let result = self.answer(request, body, &mut progress).await;
        let path = request.head.path();
        let resource_path = progress.target.as_ref().map_or(path.into(), |target| target.resource_path(path));
        let context = RequestContext {
            method: Some(request.head.method()),
            path: &resource_path,
            target: progress.subject(),
            route: progress.route_pattern(),
            operation: progress.counted_operation,
        };
        let mut response = match result {
            Ok(reply) => reply::success(reply, context, self.ids(&request.id)),
            Err(error) => {
                let error =
                    naming_mode(error, (self.compatibility, &self.engine), request, progress.target.as_ref());
                if let Some(cause) = error.failure_cause() {
                    // The request log has only the status. Operators find the cause under the request's id.
                    tracing::error!(target: "service::s3", request_id = request.id, code = error.code(), cause, "a request failed");
                }
                self.record(request, &progress, &error);
                self.record_refusal(request, &progress, &error);
                reply::failure(&with_region(error, context), context, self.ids(&request.id))
            }
        };
        response.meta.principal =
            progress.authentication.as_ref().map(|found| self.logged_name(&found.principal));
        if *request.head.method() != Method::OPTIONS {
            let (mode, target) = (self.compatibility, context.target);
            cors::responses::write_actual(&self.engine, mode, target, &request.head, &mut response.head);
        }
        response
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        let error = rejection_error(&reason);
        let context = RequestContext { method: None, path: "", target: None, route: "", operation: "" };
        reply::failure(&error.closing(), context, self.ids(request_id))
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        // The path of a link is its token, a secret.
        let request =
            exchange.request.filter(|request| paths_are_logged() && self.link_kind(request).is_none());
        // A path that cannot be decoded was refused, and names nothing.
        let target_of = |request: &Request| self.target_below(self.host_bucket(request), request.head.path());
        let target = request.and_then(|request| target_of(request).ok());
        let resource = target.as_ref().map(Target::recordable);
        let resource = resource.map(|(bucket, key)| LoggedResource { bucket, key });
        log_exchange(Plane::Data, exchange, resource);
    }
}

/// Returns what a request requires of its client's policies.
fn required_rights(
    implementation: Implementation,
    fields: Fields<'_>,
    form: Option<&Form>,
) -> RequiredRights {
    let reveals_stored_object =
        implementation.accepts(Input::WriteCondition) && write_conditions::reveals_stored_object(fields);
    let action = implementation.action.or(form.map(|_| Action::PutObject));
    let creates_object = implementation.accepts(Input::NewObject);
    RequiredRights { action, creates_object, reveals_stored_object }
}

/// Adds the region to a denied HeadBucket, as AWS does. All buckets have the same region.
fn with_region(error: S3Error, context: RequestContext<'_>) -> S3Error {
    let head_bucket = context.method == Some(&Method::HEAD)
        && context.target.is_some_and(|target| target.resource() == Resource::Bucket);
    if head_bucket && error.status() == 403 { error.header("x-amz-bucket-region", REGION) } else { error }
}
