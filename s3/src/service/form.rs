//! Browser forms: reads the fields, verifies the signature, checks the policy, and then goes the way of every request.

use super::{AuthenticatedRequest, Progress, S3Service};
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::Form;
use crate::forms::policy::PostPolicy;
use crate::reply::Reply;
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::unsupported_headers::{self, AcceptedBody};
use crate::routing::Route;
use cairn_http1::BodyFraming;
use cairn_identity::{AuthError, Authentication};
use cairn_model::Timestamp;
use cairn_net::{Request, RequestBody};

/// Headers that would make a PUT depend on the stored object. A form has fields for them.
const CONDITIONS: [&str; 2] = ["if-match", "if-none-match"];

impl S3Service {
    /// Answers a form. `headers` are the header fields of the request.
    pub(super) async fn answer_form(
        &self,
        request: &Request,
        body: &mut RequestBody<'_>,
        route: Route,
        headers: Fields<'_>,
        progress: &mut Progress,
    ) -> S3Result<Reply> {
        let bucket = progress.target.clone().expect("a request is routed by its target");
        self.check_headers(headers, request.head.framing())?;
        let content_type = headers.get("content-type").unwrap_or_default();
        // Boxed: a form that waits for its client is held by the connection.
        let mut form = Box::new(Form::read(content_type, request.head.framing(), body).await?);
        let now = self.clock.now();
        let authentication = match self.authenticate_form(request, &form, now) {
            Ok(authentication) => authentication,
            Err(error) => return Err(self.throttle_failure(request, error, progress).await),
        };
        progress.authentication = Some(authentication.clone());
        let key = form.fields.key()?.to_owned();
        let target = &*progress.form_target.insert(bucket.with_key(&key));
        let policy = PostPolicy::parse(form.fields.get("policy").unwrap_or_default())?;
        policy.check(&form.fields, target.bucket_text(), now)?;
        form.restrict(policy.sizes)?;

        let query = Query::default();
        let fields = form.fields.headers()?;
        let fields = Fields::new(&fields, &query);
        let (authentication, form) = (&authentication, Some(&*form));
        let asked = AuthenticatedRequest { route, target, query: &query, fields, authentication, form, now };
        self.carry_out(request, body, asked, &mut progress.is_failure_recorded).await
    }

    /// Refuses headers that the form does not cover. Those that count for an object must be fields of the form.
    fn check_headers(&self, headers: Fields<'_>, framing: BodyFraming) -> S3Result<()> {
        headers.check_single()?;
        if headers.get("authorization").is_some() {
            return Err(AuthError::TwoMechanisms.into());
        }
        unsupported_headers::check(self.compatibility, headers, framing, AcceptedBody::Plain)?;
        let of_headers = headers.headers().iter().map(|(name, _)| *name);
        let of_query = headers.hoisted().map(|(name, _)| name);
        let unsigned: Vec<&str> =
            of_headers.chain(of_query).filter(|name| name.starts_with("x-amz-")).collect();
        if !unsigned.is_empty() {
            return Err(AuthError::HeadersNotSigned { names: unsigned.join(", ") }.into());
        }
        match CONDITIONS.iter().find(|name| headers.get(name).is_some()) {
            Some(name) => Err(S3Error::with_message(
                ErrorCode::InvalidRequest,
                format!("A form does not accept the header {name}: send it as a field of the form."),
            )),
            None => Ok(()),
        }
    }

    fn authenticate_form(
        &self,
        request: &Request,
        form: &Form,
        now: Timestamp,
    ) -> Result<Authentication, AuthError> {
        let root_attempts = self.throttle.root_attempts(request.client, request.started);
        self.authenticator.authenticate_form(&form.fields.signature(), now, root_attempts)
    }
}
