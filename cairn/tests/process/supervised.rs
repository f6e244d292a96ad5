//! Notifications to a service manager: opening the store, ready, draining, or why the server does not start.

use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;

use crate::server::{PATIENCE, Server, Variables, cairn, production, run};

/// Returns a manager's socket in this folder, and the variables of a server that uses it.
fn manager(folder: &Path) -> (UnixDatagram, Variables) {
    let path = folder.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut variables = production(&folder.join("data"));
    variables.insert("NOTIFY_SOCKET", path.to_str().unwrap().to_owned());
    (socket, variables)
}

/// Receives the next message, which has one assignment per line.
fn received(manager: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let count = manager.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..count].to_vec()).unwrap()
}

#[test]
fn ready_and_stopping_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, mut variables) = manager(folder.path());
    variables.insert("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "120".to_owned());
    let server = Server::start(&["serve"], &variables);
    assert_eq!(received(&manager), "STATUS=Opening the store");
    let ready = received(&manager);
    let Server { data, management, console, .. } = &server;
    let expected =
        format!("READY=1\nSTATUS=Ready: S3 on {data}, management on {management}, console on {console}");
    assert_eq!(ready, expected);
    TcpStream::connect(&server.data).unwrap();
    server.signal(Signal::TERM);
    let stopping = received(&manager);
    assert!(stopping.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=135000000\nSTATUS=Draining"), "{stopping}");
}

#[test]
fn the_reason_of_a_failed_start_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, variables) = manager(folder.path());
    std::fs::write(folder.path().join("data"), "a file where the folder should be").unwrap();
    let (code, _, stderr) = run(&["serve"], &variables);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(received(&manager), "STATUS=Opening the store");
    let why = received(&manager);
    assert!(
        why.starts_with("STATUS=") && why.contains("data") && stderr.contains(&why["STATUS=".len()..]),
        "{why}"
    );
}

/// Such a server keeps running and refuses requests. Without the notification, its start would time out, and it would be
/// restarted again and again.
#[test]
fn a_server_that_refuses_the_format_of_a_store_reports_ready() {
    for version in [2, 999] {
        refuse_format(version);
    }
}

fn refuse_format(version: u32) {
    let folder = tempfile::tempdir().unwrap();
    let (manager, variables) = manager(folder.path());
    assert_eq!(Server::start(&["serve"], &variables).stop(), Some(0));
    set_format_version(folder.path(), version);
    let mut process = cairn(&["serve"], &variables).stderr(std::process::Stdio::null()).spawn().unwrap();
    // The first message came from the server that created the store.
    let told =
        std::iter::repeat_with(|| received(&manager)).filter(|message| message.starts_with("READY=1")).nth(1);
    process.kill().unwrap();
    process.wait().unwrap();
    let told = told.unwrap();
    assert!(
        told.contains("STATUS=Every request is refused: ") && told.contains(&version.to_string()),
        "{told}"
    );
}

/// Changes the version in the superblock of the store in this folder.
fn set_format_version(folder: &Path, version: u32) {
    let superblock = folder.join("data").join("superblock.json");
    let text = std::fs::read_to_string(&superblock).unwrap();
    let (before, after) = text.split_once("\"format_version\": ").unwrap();
    let rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    std::fs::write(&superblock, format!("{before}\"format_version\": {version}{rest}")).unwrap();
}
