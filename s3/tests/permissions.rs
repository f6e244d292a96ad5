//! Permissions of service accounts: every operation under each action, hidden 404s, conditional writes and the bypass
//! of governance.

use crate::common::{Call, Client, Server};
use cairn_identity::policy::Action;
use cairn_observe::{AuditQuery, AuditResult};
use cairn_s3::{Compatibility, OperationSummary, operations};
use futures_lite::future::block_on;

/// Each action and the operations that it allows, independent of the table.
const COVERED: [(&str, &[&str]); 5] = [
    (
        "s3:ListBucket",
        &[
            "HeadBucket",
            "GetBucketLocation",
            "ListObjects",
            "ListObjectsV2",
            "ListObjectVersions",
            "ListMultipartUploads",
        ],
    ),
    (
        "s3:GetObject",
        &[
            "GetObject",
            "GetObjectAcl",
            "GetObjectAttributes",
            "HeadObject",
            "ListParts",
            "GetObjectRetention",
            "GetObjectLegalHold",
            "GetObjectTagging",
        ],
    ),
    (
        "s3:PutObject",
        &[
            "PutObject",
            "CopyObject",
            "CreateMultipartUpload",
            "UploadPart",
            "UploadPartCopy",
            "CompleteMultipartUpload",
            "PutObjectAcl",
            "PutObjectRetention",
            "PutObjectLegalHold",
            "PutObjectTagging",
            "DeleteObjectTagging",
        ],
    ),
    ("s3:DeleteObject", &["DeleteObject", "AbortMultipartUpload"]),
    (
        "s3:ManageBucket",
        &[
            "CreateBucket",
            "DeleteBucket",
            "GetBucketVersioning",
            "PutBucketVersioning",
            "GetBucketCors",
            "PutBucketCors",
            "DeleteBucketCors",
            "GetObjectLockConfiguration",
            "PutObjectLockConfiguration",
            "GetBucketLifecycleConfiguration",
            "PutBucketLifecycleConfiguration",
            "DeleteBucketLifecycle",
            "GetBucketTagging",
            "PutBucketTagging",
            "DeleteBucketTagging",
            "GetBucketAccelerateConfiguration",
            "GetBucketAcl",
            "PutBucketAcl",
            "GetBucketEncryption",
            "GetBucketLogging",
            "GetBucketNotificationConfiguration",
            "GetBucketOwnershipControls",
            "PutBucketOwnershipControls",
            "DeleteBucketOwnershipControls",
            "GetBucketPolicy",
            "GetBucketPolicyStatus",
            "GetBucketReplication",
            "GetBucketRequestPayment",
            "GetBucketWebsite",
            "GetPublicAccessBlock",
            "PutBucketEncryption",
            "DeleteBucketEncryption",
            "PutBucketPolicy",
            "DeleteBucketPolicy",
            "PutPublicAccessBlock",
            "DeletePublicAccessBlock",
        ],
    ),
];

const BOTH: [&str; 2] = ["bucket:photos", "bucket:photos/*"];

fn action_of(operation: &OperationSummary) -> Option<&'static str> {
    COVERED.iter().find(|(_, names)| names.contains(&operation.name)).map(|(action, _)| *action)
}

/// Builds a request that gets as far as authorization.
fn request(operation: &OperationSummary) -> Call {
    let path = operation.path.replace("{bucket}", "photos").replace("{key}", "kept");
    let query: Vec<String> = operation.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let call = Call::new(operation.method.as_str(), &format!("{path}?{}", query.join("&")));
    match operation.header {
        Some("x-amz-copy-source") => call.header("x-amz-copy-source", "/sources/a"),
        Some(name) => call.header(name, "x"),
        None => call,
    }
}

/// Returns whether the response is an authorization error. HEAD has only the status.
fn is_denied(client: &mut Client, call: Call) -> bool {
    let is_head = call.method == "HEAD";
    let answer = client.send(call);
    assert!(answer.status != 403 || is_head || answer.element("Code").as_deref() == Some("AccessDenied"));
    assert!(answer.status < 500, "{}", answer.text());
    answer.status == 403
}

#[test]
fn each_operation_is_allowed_by_its_action_only() {
    // Both modes allow an operation by the same action, and this one has more operations.
    let server = Server::start_in(Compatibility::Extended);
    server.client().send(Call::new("PUT", "/photos")).expect(200);
    let sources = ("allow", "s3:GetObject", "bucket:sources/*");
    let built: Vec<_> = operations(Compatibility::Extended)
        .filter(|row| row.is_implemented && row.name != "Preflight")
        .collect();
    for row in built.iter().filter(|row| row.name != "ListBuckets") {
        assert_eq!(row.action.map(Action::name), action_of(row), "{}", row.name);
    }
    let names = Action::ALL.map(Action::name);
    for action in names {
        let on_both = |effect, action| BOTH.map(|resource| (effect, action, resource));
        let alone = [&on_both("allow", action)[..], &[sources]].concat();
        let all: Vec<_> = names.into_iter().flat_map(|name| on_both("allow", name)).collect();
        let others: Vec<_> = all.iter().copied().filter(|statement| statement.1 != action).collect();
        let denied = [&all[..], &on_both("deny", action), &[sources]].concat();
        let mut alone = server.client_of(server.account(&format!("{action} alone"), &alone));
        let mut others =
            server.client_of(server.account(&format!("no {action}"), &[&others[..], &[sources]].concat()));
        let mut denied = server.client_of(server.account(&format!("denied {action}"), &denied));
        let mut nobody = server.client_of(server.account(&format!("nobody {action}"), &[]));
        for row in built.iter().filter(|row| action_of(row) == Some(action)) {
            for refused in [&mut nobody, &mut others, &mut denied] {
                assert!(is_denied(refused, request(row)), "{} without {action}", row.name);
            }
            // Another test covers missing buckets and keys.
            server.client().send(Call::new("PUT", "/photos"));
            server.client().send(Call::new("PUT", "/photos/kept").body("kept")).expect(200);
            assert!(!is_denied(&mut alone, request(row)), "{} with {action}", row.name);
            server.client().send(Call::new("DELETE", "/photos/kept"));
        }
        for row in built.iter().filter(|row| action_of(row).is_some_and(|other| other != action)) {
            assert!(is_denied(&mut alone, request(row)), "{} with {action} alone", row.name);
        }
    }
}

#[test]
fn missing_key_is_404_with_list_permission_else_403() {
    let server = Server::with_bucket("photos");
    let mut root = server.client();
    root.send(
        Call::new("PUT", "/photos?versioning")
            .body("<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
    )
    .expect(200);
    root.send(Call::new("PUT", "/photos/gone").body("x")).expect(200);
    root.send(Call::new("DELETE", "/photos/gone")).expect(204);
    root.send(Call::new("PUT", "/photos/kept").body("x")).expect(200);
    let get = ("allow", "s3:GetObject", "bucket:photos/*");
    let put = ("allow", "s3:PutObject", "bucket:photos/*");
    let mut reader = server.client_of(server.account("reader", &[get, put]));
    let list = ("allow", "s3:ListBucket", "bucket:photos");
    let mut lister = server.client_of(server.account("lister", &[get, put, list]));
    let targets = ["/photos/never", "/photos/gone", "/photos/kept?versionId=0000000000000001"];
    for target in targets {
        let lists = lister.send(Call::new("GET", target)).expect(404);
        assert!(lists.element("Code").unwrap().starts_with("NoSuch"));
        let hidden = reader.send(Call::new("GET", target)).refused(403, "AccessDenied");
        assert!(
            hidden.header("x-amz-delete-marker").is_none() && hidden.header("x-amz-version-id").is_none()
        );
        lister.send(Call::new("HEAD", target)).expect(404);
        let hidden = reader.send(Call::new("HEAD", target)).expect(403);
        assert!(hidden.header("x-amz-delete-marker").is_none());
        let source = target.trim_start_matches('/');
        let copy = || Call::new("PUT", "/photos/copy").header("x-amz-copy-source", source);
        lister.send(copy()).expect(404);
        reader.send(copy()).refused(403, "AccessDenied");
    }
    reader.send(Call::new("GET", "/photos/kept")).expect(200);
    reader.send(Call::new("GET", "/photos?list-type=2")).refused(403, "AccessDenied");
}

/// The response of a conditional write reveals whether the condition holds. With `If-Match`, and with the size and time
/// of a DELETE, an account that could only write found out whether an object existed and which entity tag it had.
#[test]
fn conditional_write_requires_read_permission() {
    let server = Server::with_bucket("photos");
    let mut root = server.client();
    let etag = root.send(Call::new("PUT", "/photos/kept").body("x")).expect(200);
    let etag = etag.header("etag").unwrap().to_owned();
    let (put, delete, get) = (
        ("allow", "s3:PutObject", "bucket:photos/*"),
        ("allow", "s3:DeleteObject", "bucket:photos/*"),
        ("allow", "s3:GetObject", "bucket:photos/kept"),
    );
    let source = ("allow", "s3:GetObject", "bucket:sources/*");
    let mut writer = server.client_of(server.account("writer", &[put, delete, source]));
    for key in ["kept", "missing"] {
        let path = format!("/photos/{key}");
        let complete = format!("{path}?uploadId=x");
        let copied = Call::new("PUT", &path).header("x-amz-copy-source", "/sources/a");
        let mut calls = vec![
            Call::new("DELETE", &path).header("x-amz-if-match-size", "1"),
            Call::new("DELETE", &path).header("x-amz-if-match-size", "no number"),
            Call::new("DELETE", &format!("{path}?x-amz-if-match-size=1")),
            Call::new("DELETE", &path).header("x-amz-if-match-last-modified-time", "7"),
        ];
        for tag in [&*etag, "\"0123\"", "*"] {
            calls.push(Call::new("PUT", &path).header("if-match", tag).body("y"));
            calls.push(copied.clone().header("if-match", tag));
            calls.push(Call::new("POST", &complete).header("if-match", tag).body("y"));
            calls.push(Call::new("DELETE", &path).header("if-match", tag));
        }
        for call in calls {
            let refused = writer.send(call).refused(403, "AccessDenied");
            let message = refused.element("Message").unwrap();
            assert_eq!(message, "Access Denied: no policy allows s3:GetObject on the object.");
        }
    }
    assert_eq!(root.send(Call::new("GET", "/photos/kept")).expect(200).text(), "x");
    let mut reader = server.client_of(server.account("reader", &[put, delete, get]));
    let tagged = |tag: &str| Call::new("PUT", "/photos/kept").header("if-match", tag).body("y");
    reader.send(tagged("\"0123\"")).refused(412, "PreconditionFailed");
    reader.send(tagged(&etag)).expect(200);
    // As documented, this one reveals that an object exists.
    let absent = || Call::new("PUT", "/photos/kept").header("if-none-match", "*").body("z");
    writer.send(absent()).refused(412, "PreconditionFailed");
}

/// Only operations that accept a version hid missing keys, so a write or a copy with `If-Match` still revealed them.
#[test]
fn every_operation_hides_missing_keys_by_bucket() {
    let server = Server::with_bucket("photos");
    let mut root = server.client();
    root.send(Call::new("PUT", "/sources")).expect(200);
    root.send(Call::new("PUT", "/sources/a").body("x")).expect(200);
    let statements = [
        ("allow", "s3:PutObject", "bucket:photos/*"),
        ("allow", "s3:GetObject", "bucket:photos/*"),
        ("allow", "s3:GetObject", "bucket:sources/*"),
        ("allow", "s3:ListBucket", "bucket:sources"),
    ];
    let mut client = server.client_of(server.account("web", &statements));
    let put = Call::new("PUT", "/photos/never").header("if-match", "*").body("x");
    client.send(put).refused(403, "AccessDenied");
    let copy = |source: &str| Call::new("PUT", "/photos/never").header("x-amz-copy-source", source);
    client.send(copy("/sources/a").header("if-match", "*")).refused(403, "AccessDenied");
    // The source's bucket may be listed, so a missing source is shown, although the target's bucket may not be listed.
    client.send(copy("/sources/never")).refused(404, "NoSuchKey");
    client.send(copy("/sources/a")).expect(200);
}

#[test]
fn bypass_of_governance_requires_manage_bucket() {
    let server = Server::start();
    let mut root = server.client();
    root.send(Call::new("PUT", "/photos").header("x-amz-bucket-object-lock-enabled", "true")).expect(200);
    let locked = Call::new("PUT", "/photos/a")
        .header("x-amz-object-lock-mode", "GOVERNANCE")
        .header("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z")
        .header("content-md5", "ndTkYSaMgDT1yFZOFVxnpg==")
        .body("x");
    let answer = root.send(locked);
    let version = answer.header("x-amz-version-id").map(str::to_owned);
    let version = version.unwrap_or_else(|| panic!("{}", answer.text()));
    let delete = || {
        Call::new("DELETE", &format!("/photos/a?versionId={version}"))
            .header("x-amz-bypass-governance-retention", "true")
    };
    let allow = ("allow", "s3:DeleteObject", "bucket:photos/*");
    let mut plain = server.client_of(server.account("plain", &[allow]));
    let refused = plain.send(delete()).refused(403, "AccessDenied");
    assert!(refused.element("Message").unwrap().contains("s3:ManageBucket"), "{}", refused.text());
    let manage = ("allow", "s3:ManageBucket", "bucket:photos");
    let mut manager = server.client_of(server.account("manager", &[allow, manage]));
    manager.send(delete()).expect(204);
}

#[test]
fn denial_is_recorded_with_account_and_reason() {
    let server = Server::with_bucket("photos");
    let statements =
        [("allow", "s3:GetObject", "bucket:photos/*"), ("deny", "s3:GetObject", "bucket:photos/secret")];
    let keys = server.account("web", &statements);
    let mut client = server.client_of(keys.clone());
    for (call, resource, reason) in [
        (Call::new("GET", "/photos/secret"), "photos/secret", "a policy denies s3:GetObject on the object"),
        (Call::new("PUT", "/photos/a").body("x"), "photos/a", "no policy allows s3:PutObject on the object"),
    ] {
        let refused = client.send(call).refused(403, "AccessDenied");
        assert!(refused.element("Message").unwrap().contains(reason), "{}", refused.text());
        let id = refused.header("x-amz-request-id").unwrap().to_owned();
        let query = AuditQuery { request_id: Some(id), limit: 10, ..AuditQuery::default() };
        let events = block_on(server.audit.page(query)).unwrap().events;
        assert_eq!(events.len(), 1, "{resource}");
        let record = &events[0].record;
        assert_eq!((record.principal.as_str(), record.result), ("account:web", AuditResult::Denied));
        assert_eq!(record.resource, resource);
        assert_eq!(record.detail, format!("AccessDenied: {reason}; access key {}", keys.access_key));
    }
    // A hidden 404 is not a denial. Records of such requests named another action, and used up the client's limit of
    // records.
    client.send(Call::new("GET", "/photos/missing")).refused(403, "AccessDenied");
    let last = client.send(Call::new("GET", "/photos/secret")).refused(403, "AccessDenied");
    let id = last.header("x-amz-request-id").map(str::to_owned);
    let query =
        |request_id, resource| AuditQuery { request_id, resource, limit: 10, ..AuditQuery::default() };
    assert_eq!(block_on(server.audit.page(query(id, None))).unwrap().events.len(), 1);
    let missing = query(None, Some("photos/missing".to_owned()));
    assert!(block_on(server.audit.page(missing)).unwrap().events.is_empty());
}
