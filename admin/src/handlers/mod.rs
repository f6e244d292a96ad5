//! The handlers of the routes, one file per kind of resource.

pub(crate) mod access;
pub(crate) mod accounts;
pub(crate) mod audit_events;
mod audited_refusal;
pub(crate) mod backup;
pub(crate) mod buckets;
pub(crate) mod compaction;
pub(crate) mod console;
pub(crate) mod cors;
pub(crate) mod credentials;
pub(crate) mod events;
pub(crate) mod imports;
pub(crate) mod lifecycle;
pub(crate) mod links;
pub(crate) mod metrics;
pub(crate) mod object_lock;
pub(crate) mod objects;
pub(crate) mod openapi;
pub(crate) mod policies;
pub(crate) mod public_access;
mod refusal_rules;
pub(crate) mod refused_requests;
pub(crate) mod storage;
pub(crate) mod system;
pub(crate) mod tokens;
pub(crate) mod verify;
pub(crate) mod webhooks;
