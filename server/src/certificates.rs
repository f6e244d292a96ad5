//! The certificates of the listeners: read at the start, and again when their files change and on SIGHUP.
//!
//! A thread looks at the files once a second. What has changed is read when it has stayed the same for one look more, so
//! that a certificate and its key, which are two files, are not taken while they are being replaced one after the other. What
//! cannot be used is refused: the pair before is served on, and the log, the metrics and `/ready` say so until files that
//! can be used are there.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cairn_admin::CertificateReading;
use cairn_net::{HandshakeThreads, Pair, PairError, Tls};
use cairn_observe::Plane;

use crate::config::{PairFiles, TlsSettings};
use crate::small_file::{self, SmallFileError};

/// How often the files are looked at.
const LOOKS_APART: Duration = Duration::from_secs(1);
/// How long who asks for a reload waits for its end.
const RELOAD_PATIENCE: Duration = Duration::from_secs(5);
/// A larger file is no certificate chain and no key.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Executors for each thread that answers hellos: a busy server makes few handshakes, for its clients keep connections.
const EXECUTORS_PER_THREAD: usize = 4;
/// Permissions that others have on a key; there should be none.
const OTHERS: u32 = 0o007;

/// Why a listener has no certificate.
#[derive(Debug)]
pub enum CertificateError {
    /// A file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The files hold no pair.
    NoPair {
        /// Where they are.
        files: PairFiles,
        /// What is wrong.
        error: PairError,
    },
    /// The library could not be set up.
    Library(String),
    /// No thread could be started.
    Threads(io::Error),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                let user = rustix::process::geteuid().as_raw();
                write!(out, "{} cannot be read by the user id {user}: {error}", path.display())
            }
            Self::Unreadable { path, error } => write!(out, "{} cannot be read: {error}", path.display()),
            Self::NoPair { files, error } => {
                let (certificate, key) = (files.certificate.display(), files.key.display());
                write!(out, "{certificate} and {key} cannot be used: {error}")
            }
            Self::Library(error) => write!(out, "TLS cannot be set up: {error}"),
            Self::Threads(error) => write!(out, "no thread could be started: {error}"),
        }
    }
}

impl std::error::Error for CertificateError {}

/// The certificates of all listeners. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    presented: Arc<Vec<Presented>>,
    /// Asks the thread that looks at the files to read them; None when there are none.
    reloads: Option<Sender<SyncSender<()>>>,
}

/// What one listener presents.
struct Presented {
    plane: Plane,
    files: PairFiles,
    tls: Tls,
    state: Mutex<State>,
}

struct State {
    /// The chain that is presented, as it stood in its file.
    chain: Vec<u8>,
    not_after: Option<i64>,
    /// The files as they were read last, and as they were found changed.
    read: Stamp,
    changed: Option<Stamp>,
    replaced: u64,
    refused: u64,
    /// Why the files that are there now are not presented.
    refusal: Option<String>,
}

/// What changes when a file is replaced or written: device, inode, size, and the times of its content and of its state.
type Stamp = [Option<(u64, u64, u64, i64, i64, i64, i64)>; 2];

/// A pair with the text of its chain.
struct Loaded {
    chain: Vec<u8>,
    pair: Pair,
}

impl Certificates {
    /// Reads the certificates of the listeners that have one, and starts what answers their clients.
    ///
    /// # Errors
    /// When one cannot be used.
    pub(crate) fn load(settings: &TlsSettings, executors: usize) -> Result<Self, CertificateError> {
        let configured = [(Plane::Data, &settings.s3), (Plane::Management, &settings.api)];
        if configured.iter().all(|(_, files)| files.is_none()) {
            return Ok(Self::default());
        }
        let mut presented = Vec::with_capacity(configured.len());
        for (plane, files) in configured {
            if let Some(files) = files {
                // Threads of their own: what comes at one plane's port must not keep operators from the other's.
                let threads = HandshakeThreads::start(executors.div_ceil(EXECUTORS_PER_THREAD))
                    .map_err(CertificateError::Threads)?;
                presented.push(Presented::load(plane, files, &threads)?);
            }
        }
        let presented = Arc::new(presented);
        let reloads = watch(&presented).map_err(CertificateError::Threads)?;
        Ok(Self { presented, reloads: Some(reloads) })
    }

    /// What this plane's listeners present; None: it speaks plain HTTP.
    pub(crate) fn of(&self, plane: Plane) -> Option<Tls> {
        self.presented
            .iter()
            .find(|presented| presented.plane == plane)
            .map(|presented| presented.tls.clone())
    }

    /// Has all files read again, and waits until they were, but for no longer than [`RELOAD_PATIENCE`]: who asks has other
    /// signals to wait for, and a file system may hang.
    pub(crate) fn reload(&self) {
        let Some(reloads) = &self.reloads else { return };
        let (done, wait) = sync_channel(1);
        if reloads.send(done).is_err() || wait.recv_timeout(RELOAD_PATIENCE).is_err() {
            tracing::warn!(target: "service", "the certificates' files are still being read");
        }
    }

    /// For the metrics.
    pub(crate) fn readings(&self) -> Vec<CertificateReading> {
        self.presented.iter().map(Presented::reading).collect()
    }

    /// What `/ready` says of certificates that are not presented; it is public and names no file.
    pub(crate) fn notice(&self) -> Option<String> {
        let refused = |presented: &&Presented| presented.state().refusal.is_some();
        let planes: Vec<_> =
            self.presented.iter().filter(refused).map(|presented| presented.plane.name()).collect();
        let text = || {
            let planes = planes.join(", ");
            format!(
                "the changed certificate cannot be used, and the one before is presented ({planes}); the log says why"
            )
        };
        (!planes.is_empty()).then(text)
    }
}

/// Starts the thread that looks at the files, and reads them when it is asked to.
fn watch(presented: &Arc<Vec<Presented>>) -> io::Result<Sender<SyncSender<()>>> {
    let (reloads, asked) = channel::<SyncSender<()>>();
    let presented = Arc::clone(presented);
    let look = move || {
        loop {
            match asked.recv_timeout(LOOKS_APART) {
                Ok(done) => {
                    presented.iter().for_each(|presented| presented.reload(presented.stamp()));
                    // Who asked may have stopped waiting.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => presented.iter().for_each(Presented::look),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    thread::Builder::new().name("certificates".to_owned()).spawn(look)?;
    Ok(reloads)
}

impl Presented {
    fn load(plane: Plane, files: &PairFiles, threads: &HandshakeThreads) -> Result<Self, CertificateError> {
        let read = stamp(files);
        let Loaded { chain, pair } = load(files)?;
        let tls = Tls::new(&pair, threads).map_err(|error| CertificateError::Library(error.to_string()))?;
        warn_of_exposed_key(&files.key);
        let not_after = warn_of_validity(plane, &pair);
        let state = State { chain, not_after, read, changed: None, replaced: 0, refused: 0, refusal: None };
        tracing::info!(
            target: "service", plane = plane.name(), certificate = %files.certificate.display(), "TLS is on"
        );
        Ok(Self { plane, files: files.clone(), tls, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self) -> Stamp {
        stamp(&self.files)
    }

    /// Reads the files when they have changed and then stayed as they are.
    fn look(&self) {
        let found = self.stamp();
        let mut state = self.state();
        if found == state.read {
            state.changed = None;
        } else if state.changed.replace(found) == Some(found) {
            drop(state);
            self.reload(found);
        }
    }

    fn reload(&self, found: Stamp) {
        let loaded = load(&self.files);
        let mut state = self.state();
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
                    tracing::info!(target: "service", plane, "a new certificate is presented");
                } else if state.refusal.is_some() {
                    tracing::info!(target: "service", plane, "the certificate that is presented is in its file again");
                }
                state.refusal = None;
            }
            Err(error) => {
                // What could not be read now may be readable at the next look; what is no pair stays none.
                if matches!(error, CertificateError::NoPair { .. }) {
                    state.read = found;
                }
                let error = error.to_string();
                if state.refusal.as_ref() != Some(&error) {
                    state.refused += 1;
                    tracing::error!(
                        target: "service", plane, error,
                        "the changed certificate is not presented, the one before is"
                    );
                    state.refusal = Some(error);
                }
            }
        }
    }

    fn reading(&self) -> CertificateReading {
        let state = self.state();
        CertificateReading {
            plane: self.plane,
            not_after: state.not_after.and_then(|seconds| u64::try_from(seconds).ok()),
            replaced: state.replaced,
            refused: state.refused,
            is_refused: state.refusal.is_some(),
        }
    }
}

/// Reads and checks a pair, as a start does.
///
/// # Errors
/// [`CertificateError`].
pub(crate) fn load_pair(files: &PairFiles) -> Result<Pair, CertificateError> {
    load(files).map(|loaded| loaded.pair)
}

fn load(files: &PairFiles) -> Result<Loaded, CertificateError> {
    let read = |path: &Path| {
        read(path).map_err(|error| CertificateError::Unreadable { path: path.to_owned(), error })
    };
    let (chain, key) = (read(&files.certificate)?, read(&files.key)?);
    let pair = Pair::from_pem(&chain, &key);
    let pair = pair.map_err(|error| CertificateError::NoPair { files: files.clone(), error })?;
    Ok(Loaded { chain, pair })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    small_file::read(path, FILE_BYTES_MAX).map(|(bytes, _)| bytes).map_err(|error| match error {
        SmallFileError::Io(error) => error,
        SmallFileError::NotRegular => io::Error::other("it is no file"),
        SmallFileError::TooLarge => io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")),
    })
}

fn stamp(files: &PairFiles) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        let (content, state) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
        Some((found.dev(), found.ino(), found.size(), content.0, content.1, state.0, state.1))
    })
}

/// Whether every user of the host can read a private key.
pub(crate) fn is_exposed(key: &Path) -> bool {
    std::fs::metadata(key).is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}

fn warn_of_exposed_key(key: &Path) {
    if is_exposed(key) {
        tracing::warn!(target: "service", key = %key.display(), "the private key can be read by every user of this host");
    }
}

/// Tells of a certificate that is not valid now; gives until when it is.
fn warn_of_validity(plane: Plane, pair: &Pair) -> Option<i64> {
    let validity = pair.validity()?;
    if let Some(fault) = fault_of_validity(&validity, unix_now()) {
        tracing::warn!(target: "service", plane = plane.name(), "the certificate {}", fault.text());
    }
    Some(validity.end)
}

/// Why clients refuse a certificate at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValidityFault {
    Expired,
    NotYetValid,
}

impl ValidityFault {
    /// What is to be said of the certificate.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Expired => "has expired: clients will refuse it",
            Self::NotYetValid => "is not valid yet: clients will refuse it",
        }
    }
}

/// Whether a certificate that is valid from the first to the last of these seconds is not so at `now`; all since 1970.
pub(crate) fn fault_of_validity(validity: &Range<i64>, now: i64) -> Option<ValidityFault> {
    if now > validity.end {
        Some(ValidityFault::Expired)
    } else {
        (now < validity.start).then_some(ValidityFault::NotYetValid)
    }
}

/// The seconds since 1970.
pub(crate) fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX)
}
