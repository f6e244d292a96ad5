//! Opens the directory of accounts.

use std::sync::Arc;

use cairn_engine::Store;
use cairn_identity::directory::{Directory, DirectoryOptions};
use cairn_model::SystemClock;

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the directory of accounts of an open store. The store's lock protects it too, and its master key was verified.
pub(crate) fn open(settings: &Settings, store: &Store) -> Result<Arc<Directory>, ServeError> {
    let directory = Directory::open(DirectoryOptions {
        folder: settings.server.data_dir.join("identity"),
        store: store.id().0,
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec().into(),
        root_access_key: settings.auth.root_access_key.clone(),
        clock: Arc::new(SystemClock),
    })?;
    Ok(directory)
}
