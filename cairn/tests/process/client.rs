//! `cairn status` against a real server, and against one that has stopped.

use crate::server::{Server, TOKEN, Variables, production, run};

#[test]
fn status_shows_readiness_and_with_a_token_more() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["serve"], &production(folder.path()));
    let endpoint = format!("http://{}", server.management);
    let arguments = ["status", "--endpoint", endpoint.as_str()];

    let (code, stdout, stderr) = run(&arguments, &Variables::new());
    assert_eq!((code, stdout.as_str()), (Some(0), "status: ready\n"), "{stderr}");

    let with = |token: &str| Variables::from([("SERVICE_MANAGEMENT_TOKEN", token.to_owned())]);
    let (code, stdout, stderr) = run(&arguments, &with(TOKEN));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("version: ") && stdout.contains("erasure coding: no"), "{stdout}");

    let (code, stdout, stderr) = run(&arguments, &with("wrong"));
    assert_eq!((code, stdout.as_str()), (Some(0), "status: ready\n"), "the service is ready");
    assert!(stderr.contains("UNAUTHENTICATED") && !stderr.contains(TOKEN), "{stderr}");

    assert_eq!(server.stop_and_close(), Some(0));
    let (code, stdout, stderr) = run(&arguments, &Variables::new());
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "no server responds");
    assert!(stderr.contains("cannot be reached") && stderr.contains("--endpoint"), "{stderr}");
}
