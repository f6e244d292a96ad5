//! Creates the bucket before `prepare`, and lists the keys that `clean` deletes.

use std::time::Duration;

use crate::failure::{Failure, LoadError};
use crate::http::connection::{Connection, Sink};
use crate::http::request::{Requests, Target};
use crate::http::server::Server;
use crate::http::xml;
use crate::plan::Plan;

/// Maximum length of a page: 1000 escaped keys of 1024 bytes fit.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Creates the bucket of a plan if it does not exist.
///
/// # Errors
/// [`LoadError::Refused`] with the server's response.
pub fn create_bucket(plan: &Plan) -> Result<(), LoadError> {
    create_bucket_at(&plan.server, &plan.target, plan.timeout)
}

/// Creates the bucket of a target if it does not exist.
///
/// # Errors
/// [`LoadError::Refused`] with the server's response.
pub fn create_bucket_at(server: &Server, target: &Target, timeout: Duration) -> Result<(), LoadError> {
    let refused =
        |failure| LoadError::Refused { doing: format!("creating the bucket {}", target.bucket), failure };
    let (status, document) =
        exchange_at((server, timeout), &mut Requests::new(target), "PUT", &[]).map_err(refused)?;
    if matches!(status, 200 | 409) { Ok(()) } else { Err(refused(status_failure(status, &document))) }
}

/// Returns all keys under the prefix.
///
/// # Errors
/// [`LoadError::Refused`] with the server's response.
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
        // Some servers return an incomplete page without a token, so only an empty page is the end.
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

/// Sends one request for the bucket on a new connection.
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
