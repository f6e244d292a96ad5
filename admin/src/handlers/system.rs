//! The routes of health, readiness, system information and the session.

use std::collections::BTreeMap;

use cairn_api::{Capabilities, Health, Readiness, ReadinessWord, Session, SystemInfo};
use http::StatusCode;

use crate::call::Call;
use crate::context::S3Endpoint;
use crate::error::AdminError;
use crate::health::SubsystemState;
use crate::reply::Reply;

fn readiness_word(is_ready: bool) -> ReadinessWord {
    if is_ready { "ready" } else { "not_ready" }.into()
}

fn all_ready(subsystems: &[SubsystemState]) -> bool {
    subsystems.iter().all(|subsystem| subsystem.state.is_ok())
}

/// Returns what needs an operator while the service works, by subsystem.
fn notices(call: &Call<'_, '_>) -> BTreeMap<String, String> {
    let notices = call.context.readiness.notices().into_iter();
    notices.map(|(name, notice)| (name.to_owned(), notice)).collect()
}

/// `GET /health`: the process accepts connections. Nothing else is probed.
pub(crate) async fn health(_call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &Health { status: "ok".into() })
}

/// `GET /ready`: 503 when any subsystem is not ready, with the state of each, and the reason if it is public.
pub(crate) async fn ready(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let readiness = &call.context.readiness;
    let subsystems = readiness.probe().await;
    let is_ready = all_ready(&subsystems);
    let state =
        |subsystem: &SubsystemState| (subsystem.name.to_owned(), readiness_word(subsystem.state.is_ok()));
    let body = Readiness {
        status: readiness_word(is_ready),
        subsystems: (!is_ready).then(|| subsystems.iter().map(state).collect()),
        reason: if is_ready { None } else { readiness.public_reason() },
        notices: notices(&call),
    };
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Reply::json(status, &body)
}

/// `GET /api/v1/system/info`.
pub(crate) async fn system_info(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let subsystems = call.context.readiness.probe().await;
    let configured = call.context.capabilities;
    let S3Endpoint { url, listener } = &call.context.s3_endpoint;
    let s3_endpoint = url.clone().unwrap_or_else(|| listener.base(call.head.header_str("host")));
    let info = SystemInfo {
        name: "cairn".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: readiness_word(all_ready(&subsystems)),
        s3_compatibility: configured.s3_compatibility.into(),
        s3_endpoint,
        notices: notices(&call),
        capabilities: Capabilities {
            versioning: true,
            webhooks: configured.events,
            events: configured.events,
            lifecycle: true,
            sharing: call.context.open.is_some(),
            object_browser: configured.console,
            erasure_coding: false,
        },
    };
    Reply::json(StatusCode::OK, &info)
}

/// `GET /api/v1/auth/session`.
pub(crate) async fn session(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let caller = call.caller()?;
    let session = Session {
        role: caller.standing.name().into(),
        principal: caller.principal.clone(),
        authentication: caller.authentication.name().into(),
    };
    Reply::json(StatusCode::OK, &session)
}
