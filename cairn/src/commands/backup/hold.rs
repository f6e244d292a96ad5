//! A hold of a running store. Dropping it releases the store.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use cairn_api::{Backup, BeginBackup};
use cairn_engine::backup::HeldFolders;
use cairn_http1::encode_strict;
use cairn_sync::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::client::{Client, Request, read};
use crate::commands::signals::nap;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::quantity;
use crate::terminal::plain;

/// The route of backups.
pub(super) const PATH: &str = "/api/v1/storage/backup";
/// The interval at which a server is asked for the progress.
const POLL: Duration = Duration::from_millis(200);

/// The interval at which the server is asked, during the copy, whether the store is still held.
const LOOK: Duration = Duration::from_secs(2);

/// The hold ends after this time if the command was killed.
const LEASE_SECONDS: u64 = 60;

/// A store that is held. Dropping it ends the hold.
pub(super) struct Hold<'c> {
    client: &'c Client,
    /// Its id, and its folders on the host of the server.
    pub(super) held: HeldFolders,
    is_ended: bool,
    /// The reason why the store is not held any more.
    loss: Mutex<Option<Failure>>,
}

/// Ends a thread that looks at the hold.
struct Over<'a>(&'a AtomicBool, Thread);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

impl<'c> Hold<'c> {
    /// Begins a hold that ends soon after this command, however it ends. Waits until the metadata are copied.
    ///
    /// # Errors
    /// The refusal of the server, and why the hold ended early.
    pub(super) fn begin(client: &'c Client, timeout: Option<quantity::Duration>) -> Result<Self, Failure> {
        Self::begin_with(client, timeout, Some(LEASE_SECONDS))
    }

    /// Begins a hold that outlives this command. Waits until the metadata are copied.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(super) fn begin_lasting(
        client: &'c Client,
        timeout: Option<quantity::Duration>,
    ) -> Result<Self, Failure> {
        Self::begin_with(client, timeout, None)
    }

    fn begin_with(
        client: &'c Client,
        timeout: Option<quantity::Duration>,
        lease_seconds: Option<u64>,
    ) -> Result<Self, Failure> {
        let request = BeginBackup { timeout_seconds: timeout.map(|timeout| timeout.seconds), lease_seconds };
        let mut status: Backup = read(&client.call(&Request::post(PATH).json(&request))?)?;
        let folder = |path: &Option<String>| PathBuf::from(path.as_deref().unwrap_or_default());
        let hold = Self {
            client,
            held: HeldFolders {
                data_dir: folder(&status.data_dir),
                backup_dir: folder(&status.backup_dir),
                hold_id: status.id.clone().unwrap_or_default(),
            },
            is_ended: false,
            loss: Mutex::default(),
        };
        let progress = Progress::described();
        while *status.state == *"copying" {
            progress.show(status.copied_bytes, status.expected_bytes, "copying the metadata".to_owned());
            nap(POLL);
            status = hold.status()?;
        }
        match ended_early(&status) {
            Some(failure) => Err(failure),
            None => Ok(hold),
        }
    }

    /// The route of this hold.
    fn path(&self) -> String {
        format!("{PATH}?id={}", encode_strict(&self.held.hold_id))
    }

    /// Asks the server, which renews the lease.
    fn status(&self) -> Result<Backup, Failure> {
        read(&self.client.call(&Request::get(self.path()))?)
    }

    /// Returns the id of the store, in hex.
    ///
    /// # Errors
    /// If the folders cannot be read here, or are those of another hold.
    pub(super) fn store_id(&self) -> Result<String, Failure> {
        self.held.store_id().map_err(|error| {
            // The folder of a hold that has ended is gone.
            self.look().unwrap_or_else(|| {
                let why = plain(&error.to_string());
                format!("{why}\n  run this on the host of the server, as its user").into()
            })
        })
    }

    /// Keeps the store held while `run` copies it.
    pub(super) fn keep_while<T>(&self, run: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let looking = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if let Some(loss) = self.look() {
                        *self.loss.lock() = Some(loss);
                        return;
                    }
                    thread::park_timeout(LOOK);
                }
            });
            let _over = Over(&is_over, looking.thread().clone());
            run()
        })
    }

    /// Returns once why the store is not held any more, if so.
    pub(super) fn loss(&self) -> Option<Failure> {
        self.loss.lock().take()
    }

    /// Asks the server why the store is not held any more, if so.
    pub(super) fn look(&self) -> Option<Failure> {
        // A server that does not answer may hold the store all the same. The end shows it.
        let status = self.status().ok()?;
        match status.id.as_deref() {
            Some(id) if id == self.held.hold_id => {}
            Some(_) => {
                return Some(
                    "the store was released and held again by others: what was copied is no backup".into(),
                );
            }
            None => return Some("the service was restarted: what was copied is no backup".into()),
        }
        if *status.state == *"released" {
            return Some("the store was released by another command: what was copied is no backup".into());
        }
        ended_early(&status)
    }

    /// Ends the hold.
    ///
    /// # Errors
    /// The reason why not everything was kept until now.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.is_ended = true;
        if let Some(loss) = self.look() {
            return Err(loss);
        }
        let status: Backup = read(&self.client.call(&self.request())?)?;
        ended_early(&status).map_or(Ok(()), Err)
    }

    /// Leaves the store held.
    pub(super) fn keep(mut self) {
        self.is_ended = true;
    }

    fn request(&self) -> Request {
        Request::delete(self.path())
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            // If this fails, the hold ends by itself.
            let _ = self.client.call(&self.request());
        }
    }
}

/// Returns why a hold ended by itself, if it did.
pub(super) fn ended_early(status: &Backup) -> Option<Failure> {
    let reason = status.reason.as_deref()?;
    Some(format!("the backup ended early: {}\n  what was copied is no backup", plain(reason)).into())
}

/// Returns a flag that SIGINT and SIGTERM set.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("signals cannot be handled: {error}"))?;
    }
    Ok(stop)
}
