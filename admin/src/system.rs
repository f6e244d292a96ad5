//! Health, readiness, system information and the session: what the service says about itself.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::Serialize;

use crate::access::AuthenticationKind;
use crate::call::Call;
use crate::error::AdminError;
use crate::readiness::SubsystemState;
use crate::reply::Reply;

const READY: &str = "ready";
const NOT_READY: &str = "not_ready";

fn word(is_ready: bool) -> &'static str {
    if is_ready { READY } else { NOT_READY }
}

fn all_ready(subsystems: &[SubsystemState]) -> bool {
    subsystems.iter().all(|subsystem| subsystem.state.is_ok())
}

#[derive(Serialize)]
struct Status {
    status: &'static str,
}

/// `GET /health`: the process accepts connections. Nothing else is looked at.
pub(crate) async fn health(_call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &Status { status: "ok" })
}

/// What wants an operator although the service works, by subsystem.
type Notices = BTreeMap<&'static str, String>;

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    #[serde(skip_serializing_if = "Notices::is_empty")]
    notices: Notices,
}

#[derive(Serialize)]
struct NotReady {
    status: &'static str,
    subsystems: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Notices::is_empty")]
    notices: Notices,
}

/// `GET /ready`: 503 when any subsystem cannot work, with the state of each, and the reason when all may know it.
pub(crate) async fn ready(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let readiness = &call.service.options.readiness;
    let subsystems = readiness.look().await;
    let notices = readiness.notices().into_iter().collect();
    if all_ready(&subsystems) {
        return Reply::json(StatusCode::OK, &Ready { status: READY, notices });
    }
    let subsystems =
        subsystems.iter().map(|subsystem| (subsystem.name, word(subsystem.state.is_ok()))).collect();
    let reason = readiness.public_reason();
    let not_ready = NotReady { status: NOT_READY, subsystems, reason, notices };
    Reply::json(StatusCode::SERVICE_UNAVAILABLE, &not_ready)
}

#[derive(Serialize)]
struct SystemInfo {
    name: &'static str,
    version: &'static str,
    status: &'static str,
    capabilities: Capabilities,
}

/// What this build and configuration can do. Erasure coding is never among it: there is one node and one copy.
#[derive(Serialize)]
struct Capabilities {
    versioning: bool,
    webhooks: bool,
    events: bool,
    lifecycle: bool,
    object_browser: bool,
    erasure_coding: bool,
}

const CAPABILITIES: Capabilities = Capabilities {
    versioning: true,
    webhooks: false,
    events: false,
    lifecycle: false,
    object_browser: false,
    erasure_coding: false,
};

/// `GET /api/v1/system/info`.
pub(crate) async fn system_info(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let subsystems = call.service.options.readiness.look().await;
    let info = SystemInfo {
        name: "cairn",
        version: env!("CARGO_PKG_VERSION"),
        status: word(all_ready(&subsystems)),
        capabilities: CAPABILITIES,
    };
    Reply::json(StatusCode::OK, &info)
}

#[derive(Serialize)]
struct Session<'c> {
    role: &'static str,
    principal: &'c str,
    authentication: AuthenticationKind,
}

/// `GET /api/v1/auth/session`.
pub(crate) async fn session(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let caller = call.caller()?;
    let session = Session {
        role: caller.role.name(),
        principal: &caller.principal,
        authentication: caller.authentication,
    };
    Reply::json(StatusCode::OK, &session)
}
