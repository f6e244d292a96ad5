//! `POST /api/v1/buckets/{bucket}/imported-objects`: imports several small versions in one request.
//!
//! The body is a pipeline of the requests that the route for one version takes (`application/http`, RFC 9112 section 10.2).
//! They share commits, so that a small version costs neither a request nor a commit of its own.

use std::sync::Arc;

use cairn_api::{ImportRefusal, ImportResult, ImportedVersions};
use cairn_engine::Bucket;
use cairn_http1::{BodyFraming, HeadLimits, RequestHead, parse_head};
use cairn_model::usize_of;
use cairn_transfer::join_all;
use http::{Method, StatusCode};

use super::run::{Import, run_of};
use super::version::{OF_VERSION, put_of_batch};
use crate::call::Call;
use crate::error::AdminError;
use crate::import_runs::ImportRun;
use crate::limits::{IMPORT_BATCH_BYTES_MAX, IMPORT_BATCH_VERSIONS_MAX, IMPORT_COMMIT_VERSIONS_MAX};
use crate::reply::Reply;
use crate::request::names::{decoded, object_key};
use crate::request::query::Parameters;

/// A request of a batch.
struct Part<'b> {
    head: RequestHead,
    body: &'b [u8],
}

/// Imports the versions of a batch, in no particular order. A version that is refused does not affect the others.
///
/// # Errors
/// `INVALID_REQUEST`, and nothing is imported, if the body is not a pipeline of requests or has too many. Otherwise those of
/// the run and of the bucket.
pub(crate) async fn put_batch(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let run = run_of(&call, &bucket, &call.parameters)?;
    let body = call.body_of(IMPORT_BATCH_BYTES_MAX).await?;
    let parts = parts(&body)?;
    let mut versions = Vec::with_capacity(parts.len());
    let turns = &call.context.open()?.import_turns;
    for some in parts.chunks(IMPORT_COMMIT_VERSIONS_MAX) {
        // The writes of others wait for the commit that all of them are in.
        let _turn = turns.next().await;
        let import_each = some.iter().map(|part| import_part(&call, (&run, &bucket), part));
        versions.extend(join_all(import_each.collect()).await);
    }
    Reply::json(StatusCode::OK, &ImportedVersions { versions })
}

/// Divides the body into its requests.
fn parts(mut body: &[u8]) -> Result<Vec<Part<'_>>, AdminError> {
    let mut parts = Vec::new();
    while !body.is_empty() {
        let number = parts.len() + 1;
        let refused = |what: &str| AdminError::invalid(format!("request {number} of the batch{what}"));
        let parsed =
            parse_head(body, &HeadLimits::default()).map_err(|error| refused(&format!(": {error}")))?;
        let (head, length) = parsed.ok_or_else(|| refused(" has no complete head"))?;
        let size = match head.framing() {
            BodyFraming::None => 0,
            BodyFraming::Length(size) => usize_of(size),
            BodyFraming::Chunked => return Err(refused(" must have a Content-Length")),
        };
        body = &body[length..];
        let (content, rest) = body.split_at_checked(size).ok_or_else(|| refused(" is incomplete"))?;
        if parts.len() == IMPORT_BATCH_VERSIONS_MAX {
            return Err(refused(&format!(" is one too many: the limit is {IMPORT_BATCH_VERSIONS_MAX}")));
        }
        parts.push(Part { head, body: content });
        body = rest;
    }
    Ok(parts)
}

/// Imports one version, and counts it in the run.
async fn import_part(
    call: &Call<'_, '_>,
    (run, bucket): (&Arc<ImportRun>, &Arc<Bucket>),
    part: &Part<'_>,
) -> ImportResult {
    let import = import_of(call, (run, bucket), &part.head);
    let key = import.as_ref().map_or_else(|_| String::new(), |import| import.key.to_string());
    let put = match import {
        Ok(import) => put_of_batch(call, import, &part.head, part.body).await,
        Err(error) => Err(error),
    };
    run.count(&key, &put);
    match put {
        Ok((outcome, _)) => ImportResult { outcome: Some(outcome), error: None },
        Err(error) => {
            let error = ImportRefusal { code: error.code().to_owned(), message: error.message() };
            ImportResult { outcome: None, error: Some(error) }
        }
    }
}

/// Reads which version a request of the batch is about.
fn import_of(
    call: &Call<'_, '_>,
    (run, bucket): (&Arc<ImportRun>, &Arc<Bucket>),
    head: &RequestHead,
) -> Result<Import, AdminError> {
    let key = head.path().strip_prefix(call.head.path()).and_then(|rest| rest.strip_prefix('/'));
    let Some(key) = key.filter(|_| head.method() == Method::PUT) else {
        let message = format!("a request of the batch must be PUT {}/{{key}}", call.head.path());
        return Err(AdminError::invalid(message));
    };
    let key = object_key(&decoded(key)?)?;
    let parameters = Parameters::parse(head.query(), OF_VERSION)?;
    Ok(Import { run: Arc::clone(run), bucket: Arc::clone(bucket), key, parameters })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn a_body_is_divided_into_its_requests() {
        let body =
            b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxyPUT /b HTTP/1.1\r\nHost: h\r\n\r\n";
        let parts = parts(body).expect("is a pipeline");
        let shown: Vec<_> = parts.iter().map(|part| (part.head.path(), part.body)).collect();
        assert_eq!(shown, [("/a", &b"xy"[..]), ("/b", b"")]);
    }

    #[test]
    fn a_body_that_is_no_pipeline_is_refused() {
        let head = "PUT /a HTTP/1.1\r\nHost: h\r\n";
        for body in [
            "x".to_owned(),
            head.to_owned(),
            format!("{head}Content-Length: 3\r\n\r\nxy"),
            format!("{head}Content-Length: 18446744073709551615\r\n\r\n"),
            format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            format!("{head}\r\n").repeat(super::IMPORT_BATCH_VERSIONS_MAX + 1),
        ] {
            assert!(parts(body.as_bytes()).is_err(), "{body}");
        }
    }
}
