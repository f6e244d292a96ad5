//! Plans for unit tests.

use std::time::Duration;

use crate::http::request::{Auth, Secret, Target};
use crate::objects::key_space::KeySpace;
use crate::objects::sizes::Sizes;
use crate::plan::{PageOptions, Plan};
use crate::units::ByteCount;
use crate::workload::{Digest, Order, Ratio, Workload};

/// Returns a plan with 100 keys of 4 KiB over 4 connections to an address without a server.
pub(crate) fn plan(workload: Workload) -> Plan {
    Plan {
        workload,
        name: "test",
        server: "127.0.0.1:1".parse::<std::net::SocketAddr>().unwrap().into(),
        endpoint: "http://127.0.0.1:1".into(),
        target: Target {
            host: "127.0.0.1:1".into(),
            bucket: "bucket".into(),
            auth: Auth::Header,
            credentials: ("access".into(), Secret("secret".into())),
            region: "us-east-1".into(),
        },
        keys: KeySpace {
            prefix: "t/".into(),
            count: 100,
            first: 0,
            scatter: false,
            folder_keys: 0,
            seed: 1,
            sizes: Sizes::Fixed(ByteCount(4096)),
            listed: None,
        },
        size_given: true,
        connections: 4,
        threads: 4,
        warm_up: Duration::ZERO,
        duration: Some(Duration::from_millis(200)),
        requests: None,
        rate: None,
        order: Order::Random,
        range_size: ByteCount(1000),
        page: PageOptions { max_keys: 10, delimiter: None, walk: false },
        ratio: Ratio([60, 25, 5, 5, 5]),
        digest: Digest::Unsigned,
        verify: true,
        fail_on_error: false,
        json: true,
        time_series: true,
        timeout: Duration::from_secs(5),
        seed: 1,
        send_buffer: ByteCount(0),
        server_pid: None,
        touch: false,
        urls: None,
    }
}
