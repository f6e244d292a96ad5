//! `cairn status` against a real server, one that is gone, and one that is none.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::server::{Server, TOKEN, Variables, production, run};

#[test]
fn status_follows_readiness_and_shows_more_with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["serve"], &production(folder.path()));
    let endpoint = format!("http://{}", server.management);
    let arguments = ["status", "--endpoint", endpoint.as_str()];

    let (code, stdout, stderr) = run(&arguments, &Variables::new());
    assert_eq!((code, stdout.as_str()), (Some(0), "status: ready\n"), "{stderr}");

    let with = |token: &str| Variables::from([("SERVICE_MANAGEMENT_TOKEN", token.to_owned())]);
    let (code, stdout, stderr) = run(&arguments, &with(TOKEN));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("version: ") && stdout.contains("erasure_coding: false"), "{stdout}");

    let (code, _, stderr) = run(&arguments, &with("wrong"));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("UNAUTHENTICATED") && !stderr.contains(TOKEN), "{stderr}");

    assert_eq!(server.stop(), Some(0));
    assert_eq!(run(&arguments, &Variables::new()).0, Some(1), "nobody answers");
}

#[test]
fn what_answers_200_without_being_a_server_of_ours_is_not_ready() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        }
    });
    let (code, _, stderr) = run(&["status", "--endpoint", &endpoint], &Variables::new());
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(run(&["status", "--endpoint", "https://127.0.0.1:1"], &Variables::new()).0, Some(1));
}
