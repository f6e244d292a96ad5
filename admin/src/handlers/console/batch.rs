//! `GET /batch`: several reads in one request, for views that need many small answers.
//!
//! Each read is answered as if it had been sent by itself: session, rights and audit are those of its own route.

use cairn_http1::{HeadLimits, RequestHead, parse_head};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::limits::{BATCH_BYTES_MAX, BATCH_READS_MAX};
use crate::reply::{JSON, Reply, error_body};

/// The parameter with the path and the query of a read. It is repeated.
const PATH: &str = "path";
/// Fields that describe the body of a request, which reads do not have.
const BODY_FIELDS: [&str; 4] = ["content-length", "content-type", "transfer-encoding", "expect"];

/// `GET /batch?path=…&path=…`. Returns `{"answers": [{"status": 200, "body": …}]}` in the order of the paths. A read that
/// is refused does not affect the others: its body has its error.
///
/// # Errors
/// `INVALID_REQUEST` if there is no path, if there are more than [`BATCH_READS_MAX`], or if one is not the path and query of a
/// GET.
pub(crate) async fn batch(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let targets: Vec<_> = call.parameters.texts(PATH).collect();
    if targets.is_empty() || targets.len() > BATCH_READS_MAX {
        return Err(AdminError::invalid(format!("a batch has 1 to {BATCH_READS_MAX} paths")));
    }
    let heads = targets.into_iter().map(|target| head_of(call.head, target));
    let heads: Vec<_> = heads.collect::<Result<_, _>>()?;
    let mut body = Vec::from(*b"{\"answers\":[");
    for (number, head) in heads.iter().enumerate() {
        let room = BATCH_BYTES_MAX.saturating_sub(body.len());
        // A read has no body that says whether the client is still there.
        let (status, answer) = match call.until_disconnect(answer(&call, head, room)).await {
            Ok(answer) => answer,
            Err(AdminError::ClientDisconnected) => return Err(AdminError::ClientDisconnected),
            Err(error) => (error.status(), error_body(&error, call.audit.request_id)),
        };
        let separator = if number > 0 { "," } else { "" };
        let start = format!("{separator}{{\"status\":{},\"body\":", status.as_u16());
        body.extend_from_slice(start.as_bytes());
        body.extend_from_slice(&answer);
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    Ok(Reply::bytes(StatusCode::OK, JSON, body))
}

/// Returns the status and the JSON body of a read.
async fn answer(
    call: &Call<'_, '_>,
    head: &RequestHead,
    bytes_max: usize,
) -> Result<(StatusCode, Vec<u8>), AdminError> {
    let reply = call.reads.read(head, call.audit.request_id, call.audit.client).await?;
    Ok((reply.status, reply.json_body(bytes_max).await?))
}

/// Returns the head of a read: its own path and query, and the fields of the batch.
fn head_of(batch: &RequestHead, target: &str) -> Result<RequestHead, AdminError> {
    let refused =
        || AdminError::invalid(format!("{PATH} must be the path and query of a GET, encoded: {target:?}"));
    // A space or the end of a line would be the end of the path.
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refused());
    }
    let mut bytes = format!("GET {target} HTTP/1.1\r\n").into_bytes();
    for (name, value) in batch.headers().filter(|(name, _)| !BODY_FIELDS.contains(name)) {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    let limits = HeadLimits { bytes_max: usize::MAX, fields_max: usize::MAX };
    let (head, _) = parse_head(&bytes, &limits).ok().flatten().ok_or_else(refused)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_head() -> RequestHead {
        let bytes = b"GET /batch?path=/a HTTP/1.1\r\nHost: localhost\r\nCookie: session=1\r\nContent-Length: 2\r\n\r\n";
        parse_head(bytes, &HeadLimits::default()).unwrap().unwrap().0
    }

    #[test]
    fn a_read_has_its_own_path_and_the_fields_of_the_batch() {
        let head = head_of(&batch_head(), "/api/v1/buckets/a%20b?limit=3").unwrap();
        assert_eq!((head.path(), head.query()), ("/api/v1/buckets/a%20b", Some("limit=3")));
        let fields: Vec<_> =
            head.headers().map(|(name, value)| (name, str::from_utf8(value).unwrap())).collect();
        assert_eq!(fields, [("host", "localhost"), ("cookie", "session=1")]);
    }

    #[test]
    fn a_path_cannot_add_fields_or_name_another_host() {
        for target in [
            "",
            "x",
            "/a b",
            "/a HTTP/1.1\r\nAuthorization: Bearer x\r\n",
            "/a\r\n",
            "http://other/a",
            "/ä",
            "/a\0",
        ] {
            assert!(head_of(&batch_head(), target).is_err(), "{target:?}");
        }
    }
}
