//! Opens shares and embeds.

use std::sync::Arc;

use cairn_engine::Store;
use cairn_model::SystemClock;
use cairn_sharing::{LinkOptions, Links, ListenerUrls};

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the shares and embeds of an open store. `listeners` serve them.
///
/// The store's lock protects them too, and its master key was verified.
pub(crate) fn open(
    settings: &Settings,
    store: &Arc<Store>,
    listeners: ListenerUrls,
) -> Result<Arc<Links>, ServeError> {
    let options = LinkOptions {
        folder: settings.server.data_dir.join("sharing"),
        store: store.id().0,
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec().into(),
        policy: settings.sharing.clone(),
        listeners,
        clock: Arc::new(SystemClock),
    };
    Ok(Links::open(options)?)
}
