//! Variables of the environment must not change where deliveries go.

use super::{LONG, OK, deliver, local_client, succeeded};
use crate::receiver::Receiver;
use std::process::Command;

/// The variable with the address that the child process of the test delivers to.
const TARGET: &str = "CAIRN_TEST_WEBHOOK_TARGET";

/// Proxies are read from the environment by default. The connection would then go to the proxy, and the judged address would
/// be only a request to it.
#[test]
fn proxies_of_the_environment_are_not_used() {
    if let Ok(url) = std::env::var(TARGET) {
        return succeeded(&deliver(&local_client(LONG), &url));
    }
    let (receiver, proxy) = (Receiver::answering(OK), Receiver::answering(OK));
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "client::environment::proxies_of_the_environment_are_not_used"]);
    child.env(TARGET, receiver.url()).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, format!("http://127.0.0.1:{}", proxy.port));
    }
    let output = child.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((receiver.connections(), proxy.connections()), (1, 0));
}
