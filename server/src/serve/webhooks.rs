//! Opens the webhooks and starts their deliveries.

use std::net::SocketAddr;
use std::sync::Arc;

use cairn_engine::Store;
use cairn_model::SystemClock;
use cairn_webhooks::destination::TargetPolicy;
use cairn_webhooks::{WebhookOptions, Webhooks};

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the webhooks of an open store and starts their threads. Nothing is ever delivered to `own_listeners`.
///
/// The store's lock protects the webhooks too, and its master key was verified.
pub(crate) fn open(
    settings: &Settings,
    store: &Arc<Store>,
    own_listeners: Vec<SocketAddr>,
) -> Result<Arc<Webhooks>, ServeError> {
    let configured = settings.webhooks;
    let options = WebhookOptions {
        folder: settings.server.data_dir.join("webhooks"),
        store: store.id().0,
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec().into(),
        policy: TargetPolicy {
            allow_http: configured.allow_http,
            allow_private_networks: configured.allow_private_networks,
            own_listeners,
        },
        request_timeout: configured.request_timeout,
        maximum_attempts: configured.maximum_attempts,
        poll_interval: configured.poll_interval,
        concurrency_per_target: configured.concurrency_per_target,
        age: store.age_limit(settings.events.retention.age_max),
        clock: Arc::new(SystemClock),
    };
    let source: Arc<Store> = Arc::clone(store);
    Ok(Webhooks::open(options, source)?)
}
