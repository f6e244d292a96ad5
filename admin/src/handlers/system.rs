//! The routes of health, readiness, system information and the session.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::Serialize;

use crate::access::AuthenticationKind;
use crate::call::Call;
use crate::context::Capabilities;
use crate::error::AdminError;
use crate::health::SubsystemState;
use crate::reply::Reply;

const READY: &str = "ready";
const NOT_READY: &str = "not_ready";

fn status_text(is_ready: bool) -> &'static str {
    if is_ready { READY } else { NOT_READY }
}

fn all_ready(subsystems: &[SubsystemState]) -> bool {
    subsystems.iter().all(|subsystem| subsystem.state.is_ok())
}

#[derive(Serialize)]
struct Status {
    status: &'static str,
}

/// `GET /health`: the process accepts connections. Nothing else is probed.
pub(crate) async fn health(_call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &Status { status: "ok" })
}

/// Conditions that need an operator while the service works, by subsystem.
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

/// `GET /ready`: 503 when any subsystem is not ready, with the state of each, and the reason if it is public.
pub(crate) async fn ready(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let readiness = &call.context.readiness;
    let subsystems = readiness.probe().await;
    let notices = readiness.notices().into_iter().collect();
    if all_ready(&subsystems) {
        return Reply::json(StatusCode::OK, &Ready { status: READY, notices });
    }
    let subsystems =
        subsystems.iter().map(|subsystem| (subsystem.name, status_text(subsystem.state.is_ok()))).collect();
    let reason = readiness.public_reason();
    let not_ready = NotReady { status: NOT_READY, subsystems, reason, notices };
    Reply::json(StatusCode::SERVICE_UNAVAILABLE, &not_ready)
}

#[derive(Serialize)]
struct SystemInfo {
    name: &'static str,
    version: &'static str,
    status: &'static str,
    s3_compatibility: &'static str,
    capabilities: CapabilitiesBody,
}

/// Capabilities of this build and configuration, as JSON. There is no erasure coding: there is one node and one copy.
#[derive(Serialize)]
struct CapabilitiesBody {
    versioning: bool,
    webhooks: bool,
    events: bool,
    lifecycle: bool,
    sharing: bool,
    object_browser: bool,
    erasure_coding: bool,
}

impl CapabilitiesBody {
    fn new(configured: Capabilities, has_sharing: bool) -> Self {
        Self {
            versioning: true,
            webhooks: configured.events,
            events: configured.events,
            lifecycle: true,
            sharing: has_sharing,
            object_browser: configured.console,
            erasure_coding: false,
        }
    }
}

/// `GET /api/v1/system/info`.
pub(crate) async fn system_info(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    call.no_parameters()?;
    let subsystems = call.context.readiness.probe().await;
    let info = SystemInfo {
        name: "cairn",
        version: env!("CARGO_PKG_VERSION"),
        status: status_text(all_ready(&subsystems)),
        s3_compatibility: call.context.capabilities.s3_compatibility,
        capabilities: CapabilitiesBody::new(call.context.capabilities, call.context.open.is_some()),
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
