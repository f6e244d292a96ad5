//! The console's listener while the store is not open: answers every request with 503.

use std::rc::Rc;

use cairn_http1::{ResponseHead, StatusCode};
use cairn_net::{Exchange, Rejection, Request, RequestBody, Response, ResponseBody, Service};
use cairn_observe::{Plane, log_exchange};

const ERROR_CODE: &str = "NOT_READY";
/// The store may be too new or too old. `/ready` of the management plane says which.
const MESSAGE: &str = "the server does not open its store, because this program does not run the format of the store; the operator must upgrade the store or start another version of the program: GET /ready on the management plane says which";

/// Refuses every request and closes its connection, so that the visitor's next request may reach a working server.
pub(super) struct NoShares(());

impl NoShares {
    /// Creates the service of this executor.
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self(()))
    }
}

/// Builds the response to any visitor. It says nothing about what is stored.
fn refusal(request_id: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let body =
        format!(r#"{{"error":{{"code":"{ERROR_CODE}","message":"{MESSAGE}","request_id":"{request_id}"}}}}"#);
    let mut head = ResponseHead::new(status);
    let fields = [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-request-id", request_id),
    ];
    for (name, value) in fields {
        head.header(name, value);
    }
    let response = Response::new(head, ResponseBody::Full(body.into_bytes()), request_id);
    Response { close: true, ..response.with_error(Some(ERROR_CODE)) }
}

impl Service for NoShares {
    async fn call(&self, request: &Request, _body: &mut RequestBody<'_>) -> Response {
        refusal(&request.id)
    }

    fn reject(&self, _reason: Rejection, request_id: &str) -> Response {
        refusal(request_id)
    }

    fn completed(&self, exchange: &Exchange<'_>) {
        log_exchange(Plane::Console, exchange, None);
    }
}
