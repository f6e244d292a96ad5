//! Sends every operation of the table to a real server: what is not implemented is 501 and changes nothing.

use crate::common::{Call, Client, Server};
use cairn_s3::{Compatibility, OperationSummary, operations};

/// Builds a request that selects an operation of the table.
fn request(operation: &OperationSummary, bucket: &str) -> Call {
    let path = operation.path.replace("{bucket}", bucket).replace("{key}", "kept");
    let query: Vec<String> = operation.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let call = Call::new(operation.method.as_str(), &format!("{path}?{}", query.join("&")));
    match operation.header {
        Some(name) => call.header(name, "x"),
        None => call,
    }
}

/// Returns everything that a client can see of a bucket, and the usage that the store counts.
fn state(server: &Server, client: &mut Client, bucket: &str) -> Vec<String> {
    let mut state: Vec<String> = ["list-type=2", "versioning", "cors", "object-lock", "versions"]
        .into_iter()
        .map(|query| {
            let answer = client.send(Call::new("GET", &format!("/{bucket}?{query}")));
            answer.expect(200).text()
        })
        .collect();
    state.push(client.send(Call::new("GET", "/")).text());
    state.push(client.send(Call::new("GET", &format!("/{bucket}/kept"))).text());
    let buckets = server.store.buckets();
    state.extend(buckets.iter().map(|bucket| format!("{:?} {:?}", bucket.usage(), bucket.settings())));
    state
}

#[test]
fn every_unimplemented_operation_is_501_and_changes_nothing() {
    for mode in Compatibility::ALL {
        unimplemented_operations_change_nothing(mode);
    }
}

fn unimplemented_operations_change_nothing(mode: Compatibility) {
    let server = Server::start_in(mode);
    let mut client = server.client();
    let locking = Call::new("PUT", "/photos").header("x-amz-bucket-object-lock-enabled", "true");
    client.send(locking).expect(200);
    client.send(Call::new("PUT", "/photos/kept").body("kept")).expect(200);
    let cors = "<CORSConfiguration><CORSRule><AllowedOrigin>https://a.example</AllowedOrigin>\
                <AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";
    client.send(Call::new("PUT", "/photos?cors").body(cors)).expect(200);
    let before = state(&server, &mut client, "photos");
    let refused: Vec<OperationSummary> =
        operations(mode).filter(|operation| !operation.is_implemented).collect();
    assert!(refused.len() > 40, "{}", refused.len());
    for operation in refused {
        for body in ["", "<Any/>"] {
            let answer = client.send(request(&operation, "photos").body(body)).refused(501, "NotImplemented");
            // A header that every operation refuses is named instead of the operation.
            let named = answer.element("Operation");
            let by_header = operation.header.is_some() && named.is_none();
            assert!(by_header || named.as_deref() == Some(operation.name), "{}", answer.text());
            assert!(answer.element("Message").unwrap().contains(": "), "{}", operation.name);
        }
    }
    assert_eq!(state(&server, &mut client, "photos"), before);
}

#[test]
fn refused_head_has_no_body() {
    let server = Server::with_bucket("photos");
    let mut client = server.client();
    for target in ["/photos?acl", "/photos/kept?tagging", "/photos/kept?acl&versionId=null"] {
        let answer = client.send(Call::new("HEAD", target)).expect(501);
        assert_eq!(answer.body, b"");
        assert!(answer.header("x-amz-request-id").is_some());
    }
}

#[test]
fn every_implemented_operation_is_reached() {
    let server = Server::start_in(Compatibility::Extended);
    let mut client = server.client();
    for operation in operations(Compatibility::Extended)
        .filter(|operation| operation.is_implemented && operation.name != "CreateBucket")
    {
        let answer = client.send(request(&operation, "missing"));
        let expected = match operation.name {
            "ListBuckets" => 200,
            // Without an origin it is not a preflight.
            "Preflight" => 400,
            // A part without an upload.
            "UploadPart" if operation.query == [("partNumber", "")] => 400,
            // A document without objects.
            "DeleteObjects" => 400,
            // Not a form.
            "PostObject" => 412,
            _ => 404,
        };
        assert_eq!(answer.status, expected, "{} {:?}: {}", operation.name, operation.query, answer.text());
    }
}
