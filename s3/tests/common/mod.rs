//! A test server and a signing client on plain sockets.
#![allow(unreachable_pub, reason = "tests")]

mod signing;

use cairn_engine::{Engine, Store, StoreOptions};
use cairn_fixtures::HttpClient;
use cairn_identity::directory::{Directory, DirectoryOptions, ExecutorCredentials};
use cairn_identity::policy::Policy;
use cairn_identity::{CredentialThrottle, RootCredential};
use cairn_model::{AgeLimit, Clock, SystemClock};
use cairn_net::{Drain, Limits, bind, serve, start};
use cairn_observe::{AuditLog, AuditOptions, DataEvents, RefusedRequests};
use cairn_s3::{Compatibility, S3Options, S3Service};
use cairn_sync::Mutex;
use futures_lite::future::block_on;
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub const ACCESS_KEY: &str = "root-access-key";
pub const SECRET_KEY: &str = "root-secret-key-of-the-tests";
const MASTER_KEY: &[u8] = b"a master key of the tests, long enough";
/// Longer than any response takes.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// Limits for connections that a test makes long before it uses them.
fn patient() -> Limits {
    let forever = Duration::from_secs(3600);
    Limits { first_request_timeout: forever, idle_timeout: forever, ..Limits::default() }
}

pub struct Server {
    pub address: SocketAddr,
    drain: Drain,
    pub store: Arc<Store>,
    pub audit: Arc<AuditLog>,
    pub directory: Arc<Directory>,
    joined: Option<thread::JoinHandle<()>>,
    folder: Arc<tempfile::TempDir>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_in(Compatibility::Strict)
    }

    /// Starts a server with this mode of compatibility.
    pub fn start_in(mode: Compatibility) -> Self {
        Self::start_with(Arc::new(Self::folder()), mode)
    }

    /// Creates a folder on a real disk, because the store uses direct I/O.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
    }

    /// Stops the server, runs `change` on a copy of its store, and starts a server on the copy. The store itself cannot
    /// be used: a task that an executor never finished keeps it open, and a process opens metadata only once.
    pub fn restarted(self, change: impl FnOnce(&Path)) -> Self {
        let old = Arc::clone(&self.folder);
        drop(self);
        let copy = Self::folder();
        let copied = std::process::Command::new("cp")
            .args(["--archive", "--sparse=always", "--no-target-directory"])
            .args([old.path(), copy.path()])
            .status();
        assert!(copied.expect("cp runs").success());
        change(copy.path());
        Self::start_with(Arc::new(copy), Compatibility::Strict)
    }

    fn start_with(folder: Arc<tempfile::TempDir>, compatibility: Compatibility) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Store::open(StoreOptions {
            slices: Some(2),
            cache_bytes: 4 << 20,
            ..StoreOptions::new(folder.path().to_owned(), MASTER_KEY.to_vec().into())
        })
        .expect("the store opens");
        let audit = AuditLog::open(AuditOptions {
            folder: folder.path().join("audit"),
            store: store.id().0,
            age: AgeLimit { age_max: Duration::from_secs(86_400), clock: Arc::clone(&clock) },
            records_max: 100_000,
            data_events: DataEvents::default(),
            clock: Arc::clone(&clock),
        })
        .expect("the audit trail opens");
        let directory = Directory::open(DirectoryOptions {
            folder: folder.path().join("identity"),
            store: store.id().0,
            master_key: MASTER_KEY.to_vec().into(),
            root_access_key: ACCESS_KEY.to_owned(),
            clock: Arc::clone(&clock),
        })
        .expect("the directory opens");
        let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("binds");
        let address = listeners[0].local_addr();
        let listeners = Arc::new(Mutex::new(listeners));
        let drain = Drain::new();
        let (their_store, their_drain) = (Arc::clone(&store), drain.clone());
        let (their_audit, their_directory) = (Arc::clone(&audit), Arc::clone(&directory));
        let running = start(1, move |_| {
            let listener = listeners.lock().pop().expect("one each");
            let (store, drain, clock) = (Arc::clone(&their_store), their_drain.clone(), Arc::clone(&clock));
            let (audit, directory) = (Arc::clone(&their_audit), Arc::clone(&their_directory));
            async move {
                let engine = Engine::open(store).await.expect("the engine opens");
                let root = RootCredential::new(ACCESS_KEY, SECRET_KEY);
                let options = S3Options {
                    public_access: true,
                    links: None,
                    credentials: Box::new(ExecutorCredentials::new(root, directory)),
                    throttle: CredentialThrottle::default(),
                    audit,
                    refused: RefusedRequests::new(1).recorder(),
                    clock,
                    base_hosts: vec!["s3.test".to_owned()],
                    compatibility,
                    accepts_signature_v2: true,
                    answers_sosapi: false,
                    bound_address: address,
                };
                serve(listener, S3Service::new(engine, options), patient(), drain).await;
            }
        })
        .expect("io_uring");
        let joined = Some(thread::spawn(move || running.join().expect("no executor dies")));
        Self { address, drain, store, audit, directory, joined, folder }
    }

    /// Starts a server with one empty bucket.
    pub fn with_bucket(bucket: &str) -> Self {
        let server = Self::start();
        assert_eq!(server.client().send(Call::new("PUT", &format!("/{bucket}"))).status, 200);
        server
    }

    pub fn client(&self) -> Client {
        self.client_of(Keys { access_key: ACCESS_KEY.to_owned(), secret_key: SECRET_KEY.to_owned() })
    }

    /// Creates a service account with these statements (effect, action, resource), and returns its keys.
    pub fn account(&self, name: &str, statements: &[(&str, &str, &str)]) -> Keys {
        let made = block_on(self.directory.create_account(name.to_owned(), String::new()));
        let (account, credential) = made.expect("an account");
        for (effect, action, resource) in statements {
            let text = format!(
                r#"{{"name":"p","statements":[{{"effect":"{effect}","actions":["{action}"],"resources":["{resource}"]}}]}}"#
            );
            let policy = Policy::from_json(text.as_bytes()).expect("a policy");
            let policy = block_on(self.directory.create_policy(policy)).expect("kept");
            block_on(self.directory.attach(policy.id, account.id)).expect("attached");
        }
        let access_key = credential.info.access_key.to_string();
        Keys { access_key, secret_key: credential.secret_key.expose().to_owned() }
    }

    pub fn client_of(&self, keys: Keys) -> Client {
        let stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(READ_TIMEOUT)).expect("sets");
        stream.set_nodelay(true).expect("sets");
        Client { host: self.address.to_string(), keys, http: HttpClient::over(stream) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.drain.abort();
        if let Some(joined) = self.joined.take() {
            let ended = joined.join();
            self.directory.close();
            self.audit.close();
            self.store.close();
            if !thread::panicking() {
                ended.expect("the executors end");
            }
        }
    }
}

/// The alignment of payloads in a volume, in bytes.
pub const UNIT_BYTES: usize = 4096;

/// Finds the volume and the offset of the unit that starts with these bytes.
pub fn find(store: &Path, unit: &[u8]) -> (File, u64) {
    for slice in std::fs::read_dir(store.join("slices")).expect("the store's files") {
        for volume in std::fs::read_dir(slice.expect("the store's files").path().join("volumes"))
            .expect("the store's files")
        {
            let path = volume.expect("the store's files").path();
            let file = OpenOptions::new().read(true).write(true).open(path).expect("the store's files");
            let mut found = vec![0; UNIT_BYTES];
            for offset in (0..file.metadata().expect("the store's files").len()).step_by(UNIT_BYTES) {
                if file.read_exact_at(&mut found, offset).is_ok() && found == unit {
                    return (file, offset);
                }
            }
        }
    }
    panic!("the payload lies in no volume");
}

/// A request before it is signed. The path is sent unchanged.
#[derive(Clone)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Replaces the body's `Content-Length`.
    pub length: Option<String>,
    /// Replaces the body's `x-amz-content-sha256`.
    pub payload: Option<String>,
}

impl Call {
    pub fn new(method: &str, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            length: None,
            payload: None,
        }
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn payload(mut self, payload: &str) -> Self {
        self.payload = Some(payload.to_owned());
        self
    }

    pub fn length(mut self, length: &str) -> Self {
        self.length = Some(length.to_owned());
        self
    }
}

/// The credential that signs requests.
#[derive(Clone)]
pub struct Keys {
    pub access_key: String,
    pub secret_key: String,
}

pub struct Client {
    pub host: String,
    keys: Keys,
    http: HttpClient,
}

/// A response of the data plane.
#[derive(Debug)]
pub struct Answer(pub cairn_fixtures::Answer);

impl std::ops::Deref for Answer {
    type Target = cairn_fixtures::Answer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The text of the first element of this name.
    pub fn element(&self, name: &str) -> Option<String> {
        let text = self.text();
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
    }

    /// The texts of all elements of this name.
    pub fn elements(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let open = format!("<{name}>");
        let mut pieces = text.split(&open);
        pieces.next();
        pieces.filter_map(|piece| Some(piece.split_once(&format!("</{name}>"))?.0.to_owned())).collect()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.text());
        self
    }

    /// Checks an error's status and code, and that its request id is the header's.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        let answer = self.expect(status);
        assert_eq!(answer.element("Code").as_deref(), Some(code), "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/xml"));
        assert_eq!(answer.element("RequestId").as_deref(), answer.header("x-amz-request-id"));
        answer
    }
}

impl Client {
    /// Signs and sends a request in one write, and reads its response.
    pub fn send(&mut self, call: Call) -> Answer {
        let bodiless = call.method == "HEAD";
        let bytes = signing::signed(&call, &self.host, &self.keys);
        self.raw(bytes).answer(bodiless)
    }

    /// Sends bytes unchanged.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.http.send(bytes);
        self
    }

    /// Returns the bytes of a signed request, head and body.
    pub fn signed(&self, call: &Call) -> Vec<u8> {
        signing::signed(call, &self.host, &self.keys)
    }

    /// Reads one response.
    pub fn answer(&mut self, bodiless: bool) -> Answer {
        Answer(if bodiless { self.http.head() } else { self.http.answer() })
    }

    /// Reads until the connection ends. Returns the head of the response and the received part of its body.
    pub fn cut_answer(&mut self) -> Answer {
        Answer(self.http.cut_answer())
    }
}

/// Returns pseudo-random bytes that depend only on the seed.
pub fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
