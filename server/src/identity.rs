//! The directory of accounts in the life of the process: opened with the store, closed before it.

use std::sync::Arc;

use cairn_engine::Store;
use cairn_identity::directory::{Directory, DirectoryOptions};
use cairn_model::SystemClock;

use crate::config::Settings;
use crate::error::ServeError;

/// Opens the directory of an open store, whose lock keeps others away from it, and whose master key was found right.
pub(crate) fn open(settings: &Settings, store: &Store) -> Result<Arc<Directory>, ServeError> {
    let directory = Directory::open(DirectoryOptions {
        folder: settings.server.data_dir.join("identity"),
        store: store.id().0,
        master_key: settings.auth.credential_master_key.expose().as_bytes().to_vec(),
        root_access_key: settings.auth.root_access_key.clone(),
        clock: Arc::new(SystemClock),
    })?;
    Ok(directory)
}
