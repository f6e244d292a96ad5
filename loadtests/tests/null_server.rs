//! The binary against its own null server: every workload runs, verification finds all wrong responses and no others, and the
//! exit code is correct.

#![expect(clippy::unwrap_used, reason = "clippy does not see that helpers of tests are tests")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_cairn-load");

/// A null server that ends with the test.
struct NullServer {
    process: Child,
    endpoint: String,
}

impl NullServer {
    fn start(size: &str, seed: &str) -> Self {
        let mut process = Command::new(BINARY)
            .args(["null-server", "--bind", "127.0.0.1:0", "--size", size, "--seed", seed])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let endpoint = format!("http://{}", line.trim().strip_prefix("listening on ").unwrap());
        Self { process, endpoint }
    }

    fn load(&self, arguments: &[&str]) -> Output {
        load(&self.endpoint, arguments)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn load(endpoint: &str, arguments: &[&str]) -> Output {
    let (command, rest) = arguments.split_first().unwrap();
    // A number of requests, because a window of time may be over before the first one is answered.
    let defaults = [("--connections", "4"), ("--keys", "50"), ("--requests", "200"), ("--warm-up", "0")];
    let is_given =
        |option: &str| rest.contains(&option) || (option == "--requests" && rest.contains(&"--duration"));
    let missing = defaults.into_iter().filter(|(option, _)| !is_given(option));
    Command::new(BINARY)
        .args([command, "--endpoint", endpoint, "--bucket", "bucket", "--json"])
        .args(missing.flat_map(|(option, value)| [option, value]))
        .args(rest)
        .env("AWS_ACCESS_KEY_ID", "access")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn every_workload_runs_without_errors() {
    let server = NullServer::start("10KiB", "1");
    for arguments in [
        &["put", "--size", "10KiB"][..],
        &["put", "--payload-digest", "sha256"],
        &["put", "--auth", "presigned"],
        &["get", "--size", "10KiB", "--verify"],
        &["get", "--size", "10KiB", "--verify", "--auth", "presigned"],
        &["get", "--auth", "none", "--order", "sequential"],
        &["range-get", "--size", "10KiB", "--range-size", "1000", "--verify"],
        &["range-get", "--size", "10KiB", "--range-size", "1000", "--verify", "--auth", "presigned"],
        &["list", "--max-keys", "10"],
        &["mixed", "--auth", "presigned"],
        &["get", "--size", "10KiB", "--verify", "--threads", "1"],
        &["get", "--size", "10KiB", "--verify", "--threads", "4"],
        &["put", "--size", "10KiB", "--threads", "1"],
        &["list", "--max-keys", "10", "--threads", "1"],
    ] {
        let output = server.load(arguments);
        let report = report(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {report}");
        assert_eq!(report["error_count"], 0, "{arguments:?}: {report}");
        assert!(report["total"]["requests"].as_u64().unwrap() > 0, "{arguments:?}: {report}");
        let latency = &report["total"]["latency_us"];
        assert!(latency["p50"].as_f64().unwrap() <= latency["p99_9"].as_f64().unwrap());
        if arguments.contains(&"--verify") {
            assert!(report["verification"]["verified_bytes"].as_u64().unwrap() > 0);
        }
    }
}

#[test]
fn each_key_is_prepared_and_deleted_once() {
    let server = NullServer::start("4KiB", "1");
    for command in ["prepare", "delete"] {
        let report = report(&server.load(&[command]));
        assert_eq!(report["total"]["requests"], 50, "{report}");
    }
    let report = report(&server.load(&["put", "--requests", "7"]));
    assert_eq!(report["total"]["requests"], 7, "{report}");
}

#[test]
fn wrong_bytes_and_wrong_lengths_end_with_exit_code_2() {
    let server = NullServer::start("4KiB", "1");
    for arguments in [
        &["get", "--verify", "--seed", "2"][..],
        &["get", "--verify", "--size", "4097"],
        &["list", "--verify"],
    ] {
        let output = server.load(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let verification = &report(&output)["verification"];
        assert!(verification["failures"].as_u64().unwrap() > 0);
        assert!(!verification["examples"].as_array().unwrap().is_empty());
    }
    // The objects of the null server cannot be deleted, which a mixed run must detect.
    let output = server.load(&["mixed", "--verify", "--ratio", "1:0:1:0:0"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unreachable_server_is_an_error() {
    let output = load("http://127.0.0.1:1", &["get", "--requests", "8"]);
    assert_eq!(output.status.code(), Some(3));
    let report = report(&output);
    assert!(report["errors"]["connect: connection refused"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["total"]["latency_us"], Value::Null);
}

#[test]
fn idle_connections_stay_open() {
    let server = NullServer::start("4KiB", "1");
    let pid = server.process.id().to_string();
    let output = server.load(&["idle", "--touch", "--server-pid", &pid, "--duration", "200ms"]);
    let report = report(&output);
    assert_eq!((&report["opened"], &report["still_open"]), (&4.into(), &4.into()));
    assert!(report["server_held"]["max_kib"].as_u64().unwrap() > 0);
}

#[test]
fn contradicting_options_exit_with_1() {
    for arguments in [
        &["list", "--verify", "--walk"][..],
        &["mixed", "--keys", "3"],
        &["get", "--connections", "0"],
        &["get", "--rate", "0"],
        &["range-get", "--range-size", "0"],
    ] {
        let output = load("http://127.0.0.1:1", arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.starts_with("cairn-load: ") && !told.contains("duplicate"), "{arguments:?}: {told}");
    }
}

/// With connections of one thread and with a thread for each.
#[test]
fn open_loop_keeps_its_rate() {
    const REQUESTS: u32 = 200;
    const RATE: u32 = 400;
    let server = NullServer::start("1KiB", "1");
    for threads in ["1", "4"] {
        let output =
            server.load(&["get", "--size", "1KiB", "--rate", &RATE.to_string(), "--threads", threads]);
        let report = report(&output);
        assert_eq!(report["total"]["requests"], REQUESTS, "{report}");
        // A busy machine may be slower, but the last request is due at this time.
        let least = f64::from(REQUESTS - 1) / f64::from(RATE);
        let seconds = report["window_seconds"].as_f64().unwrap();
        assert!(seconds >= least, "{threads} threads: {seconds} s");
        assert!(report["load_model"].as_str().unwrap().starts_with("open loop"));
    }
}

/// A request waits for a free connection, and that is part of its latency: nothing is left out while the server is slow.
#[test]
fn open_loop_counts_from_when_a_request_was_due() {
    const REQUESTS: u32 = 20;
    const RATE: u32 = 2000;
    let server = NullServer::start("16MiB", "1");
    let (requests, rate) = (REQUESTS.to_string(), RATE.to_string());
    let arguments =
        ["get", "--size", "16MiB", "--connections", "1", "--requests", &requests, "--rate", &rate];
    let report = report(&server.load(&arguments));
    assert_eq!(report["total"]["requests"], REQUESTS, "{report}");
    // The last request was due long before the others were answered, and its answer ended the run. Latencies are rounded.
    let due = f64::from(REQUESTS - 1) / f64::from(RATE);
    let last = report["window_seconds"].as_f64().unwrap() - due;
    let longest = report["total"]["latency_us"]["max"].as_f64().unwrap() / 1e6;
    assert!(longest >= 0.99 * last, "{longest} s of {last} s");
}
