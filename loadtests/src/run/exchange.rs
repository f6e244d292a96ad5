//! Builds the request of a step and checks its response: status, error code, and with `--verify` every byte.
//!
//! A latency begins after [`Exchange::compose`] has returned, so it does not include choosing, signing and (with
//! `--payload-digest sha256`) hashing.

use sha2::{Digest as _, Sha256};

use super::chooser::{Presence, Step};
use super::shared::Shared;
use crate::failure::Failure;
use crate::http::connection::{Body, Connection, Sink};
use crate::http::request::{Auth, Requests};
use crate::http::response::Head;
use crate::http::signature::UNSIGNED_PAYLOAD;
use crate::http::xml;
use crate::measure::statistics::Done;
use crate::workload::Operation;
use crate::workload::{Digest, Workload};

/// Maximum length of error documents and list pages.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Requests and responses of one connection, with reused buffers.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    shared: &'a Shared,
    requests: Requests,
    name: String,
    document: Vec<u8>,
    /// The continuation token of a walk through the list.
    continuation: Option<String>,
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) reusable: bool,
    pub(crate) outcome: Result<Done, Failure>,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            requests: Requests::new(&shared.plan.target),
            name: String::new(),
            document: Vec::new(),
            continuation: None,
        }
    }

    /// Returns head and body of the request for `step`.
    pub(crate) fn compose(&mut self, step: &Step) -> (&[u8], Option<Body<'a>>) {
        let shared = self.shared;
        shared.plan.keys.write_name(step.number, &mut self.name);
        match step.operation {
            Operation::Put => {
                let body = Body {
                    content: &shared.content,
                    position: shared.content.position(&self.name, 0),
                    length: shared.plan.keys.size(step.number).0,
                };
                let digest = match (shared.plan.digest, shared.plan.target.auth) {
                    (Digest::Sha256, Auth::Header) => hex::encode(sha256(&body)),
                    _ => UNSIGNED_PAYLOAD.to_owned(),
                };
                let payload = Some((digest.as_str(), body.length));
                (self.requests.object("PUT", &self.name, payload, None).as_bytes(), Some(body))
            }
            Operation::Get | Operation::RangeGet => {
                let head = match &shared.prepared {
                    Some(prepared) => self.requests.presigned(prepared.head(step.number), step.range),
                    None => self.requests.object("GET", &self.name, None, step.range),
                };
                (head.as_bytes(), None)
            }
            Operation::Delete => (self.requests.object("DELETE", &self.name, None, None).as_bytes(), None),
            Operation::List => (self.compose_list(step).as_bytes(), None),
        }
    }

    fn compose_list(&mut self, step: &Step) -> &str {
        let plan = &self.shared.plan;
        let max_keys = plan.page.max_keys.to_string();
        let mut query =
            vec![("list-type", "2"), ("max-keys", max_keys.as_str()), ("prefix", plan.keys.prefix.as_str())];
        if let Some(delimiter) = &plan.page.delimiter {
            query.push(("delimiter", delimiter));
        }
        if plan.page.walk {
            if let Some(token) = &self.continuation {
                query.push(("continuation-token", token));
            }
        } else if let Some(before) = step.number.checked_sub(1) {
            plan.keys.write_name(before, &mut self.name);
            query.push(("start-after", &self.name));
        }
        self.requests.bucket("GET", &query)
    }

    /// Reads the response to `step` and checks it.
    pub(crate) fn receive(&mut self, connection: &mut Connection, step: &Step) -> Result<Received, Failure> {
        let head = connection.read_head()?;
        let outcome = if step.operation.succeeds_with(head.status) {
            match step.operation {
                Operation::Get | Operation::RangeGet => self.receive_object(connection, &head, step)?,
                Operation::List => self.receive_page(connection, &head, step)?,
                Operation::Put => {
                    connection.read_body(&head, &mut Sink::Discard)?;
                    Ok(Done::Transferred { bytes: self.shared.plan.keys.size(step.number).0, verified: 0 })
                }
                Operation::Delete => {
                    connection.read_body(&head, &mut Sink::Discard)?;
                    Ok(Done::Transferred { bytes: 0, verified: 0 })
                }
            }
        } else {
            self.receive_error(connection, &head, step)?
        };
        Ok(Received { reusable: !head.close, outcome })
    }

    fn receive_object(
        &self,
        connection: &mut Connection,
        head: &Head,
        step: &Step,
    ) -> Result<Result<Done, Failure>, Failure> {
        let plan = &self.shared.plan;
        if !plan.verify {
            let bytes = connection.read_body(head, &mut Sink::Discard)?;
            return Ok(Ok(Done::Transferred { bytes, verified: 0 }));
        }
        let (offset, length) = match step.range {
            Some((first, last)) => (first, Some(last - first + 1)),
            None => (0, plan.size_given.then(|| plan.keys.size(step.number).0)),
        };
        let content = &self.shared.content;
        let position = content.position(&self.name, offset);
        let mut same = true;
        let bytes = connection.read_body(head, &mut Sink::Compare { content, position, same: &mut same })?;
        let key = &self.name;
        let wrong =
            |what: String| Ok(Err(Failure::Verification(format!("{key} from byte {offset}: {what}"))));
        if step.presence == Presence::Absent {
            return wrong("was deleted but was returned".to_owned());
        }
        if let Some(length) = length.filter(|length| *length != bytes) {
            return wrong(format!("{bytes} bytes instead of {length}"));
        }
        if !same {
            return wrong(format!("{bytes} bytes that differ from those written"));
        }
        Ok(Ok(Done::Transferred { bytes, verified: bytes }))
    }

    fn receive_page(
        &mut self,
        connection: &mut Connection,
        head: &Head,
        step: &Step,
    ) -> Result<Result<Done, Failure>, Failure> {
        let plan = &self.shared.plan;
        let check = plan.verify && plan.workload != Workload::Mixed;
        if !check && !plan.page.walk {
            let bytes = connection.read_body(head, &mut Sink::Discard)?;
            return Ok(Ok(Done::Transferred { bytes, verified: 0 }));
        }
        self.document.clear();
        let bytes = connection.read_body(head, &mut Sink::Collect(&mut self.document, DOCUMENT_BYTES_MAX))?;
        let page = String::from_utf8_lossy(&self.document);
        if plan.page.walk {
            self.continuation = xml::element(&page, "NextContinuationToken");
        }
        if !check {
            return Ok(Ok(Done::Transferred { bytes, verified: 0 }));
        }
        let last = (step.number + u64::from(plan.page.max_keys)).min(plan.keys.count);
        let expected = (step.number..last).map(|number| plan.keys.name(number));
        let found = xml::elements(&page, "Key").map(xml::unescape);
        Ok(if found.eq(expected) {
            Ok(Done::Transferred { bytes, verified: bytes })
        } else {
            let count = xml::elements(&page, "Key").count();
            Err(Failure::Verification(format!(
                "the page from key {}: {count} keys that differ from the {} expected",
                step.number,
                last - step.number
            )))
        })
    }

    fn receive_error(
        &mut self,
        connection: &mut Connection,
        head: &Head,
        step: &Step,
    ) -> Result<Result<Done, Failure>, Failure> {
        self.document.clear();
        connection.read_body(head, &mut Sink::Collect(&mut self.document, DOCUMENT_BYTES_MAX))?;
        let read = matches!(step.operation, Operation::Get | Operation::RangeGet);
        if head.status == 404 && read && self.shared.plan.workload == Workload::Mixed {
            return Ok(match step.presence {
                Presence::Present => {
                    Err(Failure::Verification(format!("{} was stored but was not found", self.name)))
                }
                Presence::Absent | Presence::Unknown => Ok(Done::Absent),
            });
        }
        let code = xml::element(&String::from_utf8_lossy(&self.document), "Code");
        Ok(Err(Failure::Status(head.status, code)))
    }
}

fn sha256(body: &Body<'_>) -> [u8; 32] {
    let mut sum = Sha256::new();
    let (mut position, mut left) = (body.position, body.length);
    while left > 0 {
        let piece = body.content.piece(position, left);
        sum.update(piece);
        position = body.content.advance(position, piece.len());
        left -= piece.len() as u64;
    }
    sum.finalize().into()
}
