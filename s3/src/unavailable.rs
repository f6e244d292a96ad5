//! Data plane of a server that cannot open its store: answers every request with 503 `ServiceUnavailable`.

use crate::errors::{ErrorCode, S3Error, rejection_error};
use crate::reply::{self, RequestContext, ResponseIds};
use cairn_http1::Method;
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, Service};
use cairn_observe::{Plane, log_exchange};
use std::rc::Rc;

/// The store may be too new or too old. `/ready` of the management plane says which.
const MESSAGE: &str = "The server does not open its store, because this program does not run the format of the store. The operator must upgrade the store or start another version of the program; GET /ready on the management plane says which.";

/// Refuses every request and closes its connection, so that the client's next request may reach a working server.
pub struct UnavailableService(());

impl UnavailableService {
    /// Creates the service of this executor.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::new(Self(()))
    }
}

/// Builds the response to any client, authenticated or not. It says nothing about what is stored.
fn refusal(error: &S3Error, method: Option<&Method>, path: &str, id: &str) -> Response {
    reply::failure(
        error,
        RequestContext { method, path, target: None, route: "", operation: "" },
        ResponseIds { request: id, host: "" },
    )
}

impl Service for UnavailableService {
    async fn call(&self, request: &Request, _body: &mut RequestBody<'_>) -> Response {
        let error = S3Error::with_message(ErrorCode::ServiceUnavailable, MESSAGE).closing();
        refusal(&error, Some(request.head.method()), request.head.path(), &request.id)
    }

    fn reject(&self, reason: Rejection, request_id: &str) -> Response {
        refusal(&rejection_error(&reason).closing(), None, "", request_id)
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Data, exchange, None);
    }
}
