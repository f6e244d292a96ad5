//! A server process for tests, with a clean environment and free ports. It ends with the test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) const MASTER_KEY: &str = "master-key-0123456789-0123456789-x";
pub(crate) const TOKEN: &str = "system-token-0123456789-0123456789";
pub(crate) const ROOT: (&str, &str) = ("ROOTKEY", "root-secret-key-0123456789-012345");
/// Time limit of each step, even on a busy host.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The whole environment of a server.
pub(crate) type Variables = BTreeMap<&'static str, String>;

/// Returns the variables that production requires, with free ports and JSON logs.
pub(crate) fn production(data_dir: &Path) -> Variables {
    [
        ("SERVICE_CREDENTIAL_MASTER_KEY", MASTER_KEY),
        ("SERVICE_ROOT_ACCESS_KEY", ROOT.0),
        ("SERVICE_ROOT_SECRET_KEY", ROOT.1),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", TOKEN),
        ("SERVICE_S3_BIND", "127.0.0.1:0"),
        ("SERVICE_API_BIND", "127.0.0.1:0"),
        ("SERVICE_CONSOLE_BIND", "127.0.0.1:0"),
        ("SERVICE_LOG_JSON", "true"),
        ("SERVICE_STORAGE_CACHE_BYTES", "16MiB"),
        ("SERVICE_STORAGE_SLICES", "2"),
        // How full the machine's disk is does not matter.
        ("SERVICE_STORAGE_LOW_SPACE_PERCENT", "0"),
        ("SERVICE_DATA_DIR", data_dir.to_str().unwrap()),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
    .collect()
}

/// Returns the command with these arguments and this environment.
pub(crate) fn cairn(arguments: &[&str], variables: &Variables) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    command.args(arguments).env_clear().envs(variables).stdin(Stdio::null());
    command
}

/// Runs the binary to its end. Returns exit code, standard output and standard error.
pub(crate) fn run(arguments: &[&str], variables: &Variables) -> (Option<i32>, String, String) {
    let mut child =
        cairn(arguments, variables).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = read_all(child.stdout.take().unwrap());
    let stderr = read_all(child.stderr.take().unwrap());
    let status = wait(&mut child);
    (status.code(), stdout.recv_timeout(PATIENCE).unwrap(), stderr.recv_timeout(PATIENCE).unwrap())
}

fn read_all(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = from.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    receiver
}

/// Waits for the end, with a time limit.
fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the process did not end");
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// A server that was ready once.
pub(crate) struct Server {
    child: Child,
    log: Receiver<String>,
    pub(crate) data: String,
    pub(crate) management: String,
    pub(crate) console: String,
}

impl Server {
    /// Starts a server and waits until it is ready. Its log must be JSON.
    pub(crate) fn start(arguments: &[&str], variables: &Variables) -> Self {
        let mut child =
            cairn(arguments, variables).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, log) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let [data, management, console] = [const { String::new() }; 3];
        let mut server = Self { child, log, data, management, console };
        let ready = server.logged(|line| line["message"] == "ready");
        server.data = ready["data"].as_str().unwrap().to_owned();
        server.management = ready["management"].as_str().unwrap().to_owned();
        server.console = ready["console"].as_str().unwrap().to_owned();
        server
    }

    /// Waits for a log line and returns it.
    pub(crate) fn logged(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(left).expect("the line in the log");
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            if is_it(&value) {
                return value;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Sends SIGTERM repeatedly and returns the exit code.
    pub(crate) fn signal_until_it_ends(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the process did not end");
            self.signal(Signal::TERM);
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.wait()
    }

    /// Waits for the end. Returns the exit code, or `None` if a signal ended it.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait(&mut self.child).code()
    }

    /// Like [`Self::stop`], and waits until the management plane's port refuses connections: the kernel closes the sockets of a
    /// process with io_uring a moment after its end.
    pub(crate) fn stop_and_close(self) -> Option<i32> {
        let address = self.management.clone();
        let code = self.stop();
        let deadline = Instant::now() + PATIENCE;
        while !TcpStream::connect(&address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            assert!(Instant::now() < deadline, "the port stays open");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        code
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
