//! Audit records of denied requests and of damage.

use crate::common::{Call, Server, UNIT_BYTES, content, find};
use cairn_observe::{AuditEvent, AuditQuery, AuditResult};
use futures_lite::future::block_on;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn ask(server: &Server, query: AuditQuery) -> Vec<AuditEvent> {
    block_on(server.audit.page(AuditQuery { limit: 1000, ..query })).unwrap().events
}

fn of_request(server: &Server, id: &str) -> Vec<AuditEvent> {
    ask(server, AuditQuery { request_id: Some(id.to_owned()), ..AuditQuery::default() })
}

#[test]
fn denied_requests_are_recorded_and_object_requests_are_not() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    client.send(Call::new("PUT", "/photos/a").body(content(1, 100))).expect(200);
    client.send(Call::new("GET", "/photos/missing")).refused(404, "NoSuchKey");
    let recorded: Vec<_> =
        ask(&server, AuditQuery::default()).into_iter().map(|event| event.record.operation).collect();
    assert_eq!(recorded, ["CreateBucket"]);

    let unsigned = format!("GET /photos/a HTTP/1.1\r\nHost: {}\r\n\r\n", client.host);
    let refused = client.raw(unsigned.into_bytes()).answer(false).refused(403, "AccessDenied");
    let found = of_request(&server, refused.header("x-amz-request-id").unwrap());
    assert_eq!(found.len(), 1);
    let record = &found[0].record;
    assert_eq!((record.principal.as_str(), record.operation.as_str()), ("anonymous", "GetObject"));
    assert_eq!((record.resource.as_str(), record.result), ("photos/a", AuditResult::Denied));
    assert_eq!((record.source_ip.unwrap().is_loopback(), record.detail.as_str()), (true, "AccessDenied"));
}

/// Flips one bit of the unit in a volume that starts with these bytes.
fn flip(store: &Path, unit: &[u8]) {
    let (volume, offset) = find(store, unit);
    volume.write_all_at(&[unit[0] ^ 1], offset).unwrap();
    volume.sync_all().unwrap();
}

#[test]
fn damage_is_recorded_with_object_version_and_block() {
    const BLOCK_BYTES: usize = 64 * 1024;
    let body = content(3, 16 * BLOCK_BYTES);
    for (block, status) in [(0, 500), (12, 200)] {
        let server = Server::with_bucket("photos");
        server.client().send(Call::new("PUT", "/photos/a").body(body.clone())).expect(200);
        let at = block * BLOCK_BYTES;
        let server = server.restarted(|store| flip(store, &body[at..at + UNIT_BYTES]));
        let mut client = server.client();
        let request = client.signed(&Call::new("GET", "/photos/a"));
        let answer = client.raw(request);
        let answer = if status == 500 { answer.answer(false) } else { answer.cut_answer() }.expect(status);
        // The client may see the cut before the record is written. The executor answers a later request after it.
        server.client().send(Call::new("HEAD", "/photos/a")).expect(200);
        let found = of_request(&server, answer.header("x-amz-request-id").unwrap());
        assert_eq!(found.len(), 1, "{found:?}");
        let record = &found[0].record;
        assert_eq!((record.principal.as_str(), record.operation.as_str()), ("root", "GetObject"));
        assert_eq!((record.resource.as_str(), record.result), ("photos/a", AuditResult::Failed));
        let wanted = format!("block {block} of photos/a version null");
        assert!(record.detail.contains(&wanted), "{}", record.detail);
    }
}
