//! `cairn status` against a real server, and one that is gone.

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

    let (code, stdout, stderr) = run(&arguments, &with("wrong"));
    assert_eq!((code, stdout.as_str()), (Some(0), "status: ready\n"), "the service is ready");
    assert!(stderr.contains("UNAUTHENTICATED") && !stderr.contains(TOKEN), "{stderr}");

    assert_eq!(server.stop(), Some(0));
    let (code, stdout, stderr) = run(&arguments, &Variables::new());
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "nobody answers");
    assert!(stderr.contains("cannot be reached") && stderr.contains("--endpoint"), "{stderr}");
}
