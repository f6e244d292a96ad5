//! What surrounds a run: the bucket is made before `prepare`, and `clean` finds out which keys there are to delete.

use std::time::Duration;

use crate::connection::{Connection, Sink};
use crate::failure::{Failure, LoadError};
use crate::plan::Plan;
use crate::request::{Requests, Target};
use crate::server::Server;
use crate::xml;

/// A page of 1000 keys of 1024 bytes, escaped, fits.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Makes the bucket. That it exists is fine.
///
/// # Errors
/// [`LoadError::Refused`] with the server's answer.
pub fn create_bucket(plan: &Plan) -> Result<(), LoadError> {
    create_bucket_at(&plan.server, &plan.target, plan.timeout)
}

/// Makes the bucket of a target. That it exists is fine.
///
/// # Errors
/// [`LoadError::Refused`] with the server's answer.
pub fn create_bucket_at(server: &Server, target: &Target, timeout: Duration) -> Result<(), LoadError> {
    let refused =
        |failure| LoadError::Refused { doing: format!("creating the bucket {}", target.bucket), failure };
    let (status, document) =
        exchange_at((server, timeout), &mut Requests::new(target), "PUT", &[]).map_err(refused)?;
    if matches!(status, 200 | 409) { Ok(()) } else { Err(refused(status_failure(status, &document))) }
}

/// All keys under the prefix.
///
/// # Errors
/// [`LoadError::Refused`] with the server's answer.
pub fn list_keys(plan: &Plan) -> Result<Vec<String>, LoadError> {
    let mut requests = Requests::new(&plan.target);
    let mut keys: Vec<String> = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut query = vec![("list-type", "2"), ("prefix", plan.keys.prefix.as_str())];
        match (&token, keys.last()) {
            (Some(token), _) => query.push(("continuation-token", token.as_str())),
            (None, Some(last)) => query.push(("start-after", last)),
            (None, None) => {}
        }
        let (status, page) = exchange(plan, &mut requests, "GET", &query)
            .map_err(|failure| refused(plan, "listing", failure))?;
        if status != 200 {
            return Err(refused(plan, "listing", status_failure(status, &page)));
        }
        let before = keys.len();
        keys.extend(xml::elements(&page, "Key").map(xml::unescape));
        token = xml::element(&page, "NextContinuationToken");
        // Some servers cut a page short without giving a token: only an empty page is the end.
        if token.is_none() && keys.len() == before {
            return Ok(keys);
        }
    }
}

fn refused(plan: &Plan, doing: &str, failure: Failure) -> LoadError {
    LoadError::Refused { doing: format!("{doing} the bucket {}", plan.target.bucket), failure }
}

fn status_failure(status: u16, document: &str) -> Failure {
    Failure::Status(status, xml::element(document, "Code"))
}

/// One request for the bucket, on a connection of its own.
fn exchange(
    plan: &Plan,
    requests: &mut Requests,
    method: &str,
    query: &[(&str, &str)],
) -> Result<(u16, String), Failure> {
    exchange_at((&plan.server, plan.timeout), requests, method, query)
}

fn exchange_at(
    (server, timeout): (&Server, Duration),
    requests: &mut Requests,
    method: &str,
    query: &[(&str, &str)],
) -> Result<(u16, String), Failure> {
    let mut connection = Connection::open(server, timeout)?;
    connection.send(requests.bucket(method, query).as_bytes(), None)?;
    let head = connection.read_head()?;
    let mut document = Vec::new();
    connection.read_body(&head, &mut Sink::Collect(&mut document, DOCUMENT_BYTES_MAX))?;
    Ok((head.status, String::from_utf8_lossy(&document).into_owned()))
}
