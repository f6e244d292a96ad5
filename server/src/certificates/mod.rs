//! The listeners' certificates, reloaded on SIGHUP and when their files change.
//!
//! A thread checks the files once a second. Changed files are loaded if they are unchanged at the next check, so that a
//! certificate and its key, which are two files, are not loaded while they are being replaced one after the other. A pair that
//! cannot be used is refused: the previous pair stays in use, and the log, the metrics and `/ready` report it until the files
//! can be used.

mod pair;
mod validity;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use cairn_admin::CertificateSnapshot;
use cairn_net::{CertificateAndKey, HandshakeThreads, Tls};
use cairn_observe::Plane;
use cairn_sync::Mutex;

use crate::config::{PairFiles, TlsSettings};
use pair::{Loaded, load};

pub(crate) use pair::{CertificateError, is_exposed, load_pair};
pub(crate) use validity::{ValidityFault, fault_of_validity, unix_now};

/// The interval at which the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which the caller of a reload waits for its end.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Executors per handshake thread: a busy server makes few handshakes, because its clients reuse connections.
const EXECUTORS_PER_THREAD: usize = 4;

/// The certificates of all listeners. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    presented: Arc<Vec<Presented>>,
    /// Requests a reload from the thread that watches the files; `None` if there are no certificates.
    reloads: Option<Sender<SyncSender<()>>>,
}

/// The certificate of one listener.
struct Presented {
    plane: Plane,
    files: PairFiles,
    tls: Tls,
    state: Mutex<State>,
}

struct State {
    /// The chain in use, as read from its file.
    chain: Vec<u8>,
    not_after: Option<i64>,
    /// Identifies the files as last read.
    read: Stamp,
    /// Identifies the files as found changed at the previous check.
    changed: Option<Stamp>,
    replaced: u64,
    refused: u64,
    /// The reason why the current files are not in use.
    refusal: Option<String>,
}

/// Identifies the content of both files: device, inode, size, modification time and status change time of each.
type Stamp = [Option<(u64, u64, u64, i64, i64, i64, i64)>; 2];

/// The certificates of all listeners that speak TLS, as they were read from their files.
pub(crate) struct CertificatesRead(Vec<CertificateRead>);

struct CertificateRead {
    plane: Plane,
    files: PairFiles,
    /// Identifies the files just before.
    read: Stamp,
    loaded: Loaded,
}

impl CertificatesRead {
    /// Reads all certificates.
    ///
    /// # Errors
    /// [`CertificateError`] if one cannot be used.
    pub(crate) fn of(settings: &TlsSettings) -> Result<Self, CertificateError> {
        let planes = [
            (Plane::Data, &settings.s3),
            (Plane::Management, &settings.api),
            (Plane::Console, &settings.console),
        ];
        let configured = planes.into_iter().filter_map(|(plane, files)| Some((plane, files.clone()?)));
        let read = configured.map(|(plane, files)| {
            Ok(CertificateRead { plane, read: stamp(&files), loaded: load(&files)?, files })
        });
        read.collect::<Result<_, _>>().map(Self)
    }
}

impl Certificates {
    /// Starts the handshake threads of all TLS listeners and the thread that watches the files, which have been read.
    ///
    /// # Errors
    /// [`CertificateError`] if a certificate cannot be used or a thread cannot be started.
    pub(crate) fn start(read: CertificatesRead, executors: usize) -> Result<Self, CertificateError> {
        let mut presented = Vec::new();
        for read in read.0 {
            // Each plane has its own threads: load on one plane's port must not block operators on the other.
            let threads = HandshakeThreads::start(executors.div_ceil(EXECUTORS_PER_THREAD))
                .map_err(CertificateError::Threads)?;
            presented.push(Presented::of(read, &threads)?);
        }
        if presented.is_empty() {
            return Ok(Self::default());
        }
        let presented = Arc::new(presented);
        let reloads = watch(&presented).map_err(CertificateError::Threads)?;
        Ok(Self { presented, reloads: Some(reloads) })
    }

    /// Returns the certificate of a plane's listeners; `None` if it speaks plain HTTP.
    pub(crate) fn of(&self, plane: Plane) -> Option<Tls> {
        self.presented
            .iter()
            .find(|presented| presented.plane == plane)
            .map(|presented| presented.tls.clone())
    }

    /// Reloads all files. Waits for the end at most [`RELOAD_TIMEOUT`], because the caller handles other signals too and a file
    /// system may hang.
    pub(crate) fn reload(&self) {
        let Some(reloads) = &self.reloads else { return };
        let (done, wait) = sync_channel(1);
        if reloads.send(done).is_err() || wait.recv_timeout(RELOAD_TIMEOUT).is_err() {
            tracing::warn!(target: "service", "the certificate files are still being read");
        }
    }

    /// Returns the current state of all certificates, for the metrics.
    pub(crate) fn readings(&self) -> Vec<CertificateSnapshot> {
        self.presented.iter().map(Presented::reading).collect()
    }

    /// Returns the notice in `/ready` about refused certificates. It is public, so it names no file.
    pub(crate) fn notice(&self) -> Option<String> {
        let refused = |presented: &&Presented| presented.state.lock().refusal.is_some();
        let planes: Vec<_> =
            self.presented.iter().filter(refused).map(|presented| presented.plane.name()).collect();
        let text = || {
            let planes = planes.join(", ");
            format!(
                "the changed certificate cannot be used, and the previous one is still in use ({planes}); see the log"
            )
        };
        (!planes.is_empty()).then(text)
    }
}

/// Starts the thread that watches the files and reloads them on request.
fn watch(presented: &Arc<Vec<Presented>>) -> io::Result<Sender<SyncSender<()>>> {
    let (reloads, requests) = channel::<SyncSender<()>>();
    let presented = Arc::clone(presented);
    let look = move || {
        loop {
            match requests.recv_timeout(CHECK_INTERVAL) {
                Ok(done) => {
                    presented.iter().for_each(|presented| presented.reload(presented.stamp()));
                    // The caller may have stopped waiting.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => presented.iter().for_each(Presented::check_files),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    thread::Builder::new().name("certificates".to_owned()).spawn(look)?;
    Ok(reloads)
}

impl Presented {
    fn of(read: CertificateRead, threads: &HandshakeThreads) -> Result<Self, CertificateError> {
        let CertificateRead { plane, files, read, loaded: Loaded { chain, pair } } = read;
        let tls = Tls::new(&pair, threads).map_err(|error| CertificateError::Library(error.to_string()))?;
        warn_of_exposed_key(&files.key);
        let not_after = warn_of_validity(plane, &pair);
        let state = State { chain, not_after, read, changed: None, replaced: 0, refused: 0, refusal: None };
        tracing::info!(
            target: "service", plane = plane.name(), certificate = %files.certificate.display(), "TLS is on"
        );
        Ok(Self { plane, files, tls, state: Mutex::new(state) })
    }

    fn stamp(&self) -> Stamp {
        stamp(&self.files)
    }

    /// Reloads the files if they have changed and are the same as at the previous check.
    fn check_files(&self) {
        let found = self.stamp();
        let mut state = self.state.lock();
        if found == state.read {
            state.changed = None;
        } else if state.changed.replace(found) == Some(found) {
            drop(state);
            self.reload(found);
        }
    }

    fn reload(&self, found: Stamp) {
        let loaded = load(&self.files);
        let mut state = self.state.lock();
        state.changed = None;
        let plane = self.plane.name();
        let replaced = loaded.and_then(|Loaded { chain, pair }| {
            if chain == state.chain {
                return Ok(None);
            }
            self.tls.replace(&pair).map_err(|error| CertificateError::Library(error.to_string()))?;
            Ok(Some((chain, pair)))
        });
        match replaced {
            Ok(replaced) => {
                state.read = found;
                if let Some((chain, pair)) = replaced {
                    state.not_after = warn_of_validity(self.plane, &pair);
                    state.chain = chain;
                    state.replaced += 1;
                    tracing::info!(target: "service", plane, "a new certificate is in use");
                } else if state.refusal.is_some() {
                    tracing::info!(target: "service", plane, "the certificate in use is in its file again");
                }
                state.refusal = None;
            }
            Err(error) => {
                // Files that could not be read are tried again at the next check; an invalid pair only when it changes.
                if matches!(error, CertificateError::KeyMismatch { .. }) {
                    state.read = found;
                }
                let error = error.to_string();
                if state.refusal.as_ref() != Some(&error) {
                    state.refused += 1;
                    tracing::error!(
                        target: "service", plane, error,
                        "the changed certificate cannot be used; the previous one is still in use"
                    );
                    state.refusal = Some(error);
                }
            }
        }
    }

    fn reading(&self) -> CertificateSnapshot {
        let state = self.state.lock();
        CertificateSnapshot {
            plane: self.plane,
            not_after: state.not_after.and_then(|seconds| u64::try_from(seconds).ok()),
            replaced: state.replaced,
            refused: state.refused,
            is_refused: state.refusal.is_some(),
        }
    }
}

fn stamp(files: &PairFiles) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        let (content, state) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
        Some((found.dev(), found.ino(), found.size(), content.0, content.1, state.0, state.1))
    })
}

fn warn_of_exposed_key(key: &Path) {
    if is_exposed(key) {
        tracing::warn!(target: "service", key = %key.display(), "the private key is readable by every user of this host");
    }
}

/// Warns about a certificate that is not valid now. Returns the end of its validity, in seconds since 1970.
fn warn_of_validity(plane: Plane, pair: &CertificateAndKey) -> Option<i64> {
    let validity = pair.validity()?;
    if let Some(fault) = fault_of_validity(&validity, unix_now()) {
        tracing::warn!(target: "service", plane = plane.name(), "the certificate {}", fault.text());
    }
    Some(validity.end)
}
