//! Checks before anything is created that the ports are free.
//!
//! A port that another program uses ends the start immediately. One case needs patience: the kernel destroys the rings of a
//! killed process, and its listeners with them, only after it has reaped the process. Until then, some tenths of a second or
//! longer under load, the port of the previous run is still in use, although no process has it. So a start waits only if the
//! data folder holds a store, which a previous run may have served, and no running process has the port.

use std::time::{Duration, Instant};

use crate::config::Settings;
use crate::error::ServeError;
use crate::host::port::{self, PortError};

/// The time for which a start waits for a port that no running process has.
const PATIENCE: Duration = Duration::from_secs(10);
/// A process that is being killed may still have its port for this long.
const SETTLE: Duration = Duration::from_millis(250);
const RETRY: Duration = Duration::from_millis(50);

/// Refuses ports that are in use, and addresses that cannot be used.
///
/// # Errors
/// [`ServeError::Ports`] with all of them.
pub(super) fn refuse_taken(settings: &Settings) -> Result<(), ServeError> {
    let data_dir = &settings.server.data_dir;
    // That process probably has the ports too. Opening the store fails with the better message.
    if cairn_engine::preflight_lock(data_dir).unwrap_or(false) {
        return Ok(());
    }
    let has_store = !matches!(cairn_engine::preflight_store(data_dir), Ok(None));
    let errors: Vec<PortError> = find_taken(settings);
    if errors.is_empty() {
        return Ok(());
    }
    if !has_store || !errors.iter().all(PortError::is_in_use) {
        return Err(ServeError::Ports(errors));
    }
    wait_until_free(settings)
}

fn wait_until_free(settings: &Settings) -> Result<(), ServeError> {
    let began = Instant::now();
    let mut is_announced = false;
    loop {
        #[expect(clippy::disallowed_methods, reason = "executors have not started yet")]
        std::thread::sleep(RETRY);
        let errors = find_taken(settings);
        if errors.is_empty() {
            return Ok(());
        }
        let waited = began.elapsed();
        let is_hopeless = waited >= SETTLE && errors.iter().any(PortError::has_known_holder);
        if is_hopeless || waited >= PATIENCE {
            return Err(ServeError::Ports(errors));
        }
        if waited >= SETTLE && !is_announced {
            is_announced = true;
            for error in errors {
                let seconds = PATIENCE.as_secs();
                tracing::warn!(target: "service", "{}; waiting up to {seconds} s, because the previous run may have been killed just now", error.message());
            }
        }
    }
}

fn find_taken(settings: &Settings) -> Vec<PortError> {
    let listeners = settings.server.listeners().into_iter();
    listeners
        .filter_map(|(key, bind)| {
            let error = port::try_listen(bind.address).err()?;
            Some(PortError::new(bind.address, settings.values.source(key), error))
        })
        .collect()
}
