//! A client of a history: sends random requests over one connection and records requests, responses and times.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::history::{Answer, Call, Condition, Operation, Tag};
use crate::failure::Failure;
use crate::http::connection::{Connection, Sink};
use crate::http::request::{Requests, Target};
use crate::http::response::Head;
use crate::http::signature::UNSIGNED_PAYLOAD;
use crate::http::xml;
use crate::random::Random;
use crate::units::index;

/// Sizes of bodies: inline in the record, in one block, in several blocks, and in several writes.
const SIZES: [usize; 6] = [64, 700, 5_000, 20_000, 70_000, 400_000];
/// Maximum length that a GET reads.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The way in which a version is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Put,
    /// CopyObject, from a key that only this client uses.
    Copy,
    /// The completion of an upload of one part.
    Parts,
}

/// Half of the writes are puts.
const WAYS: [Way; 4] = [Way::Put, Way::Put, Way::Copy, Way::Parts];

/// A version that a GET returned: its tag, and the number of the put that wrote it.
pub(super) type Shown = (Tag, u64);

/// Head and body of a response.
type Answered = Result<(Head, Vec<u8>), Failure>;

/// A client, with its connection and what it knows.
pub(super) struct Client {
    address: SocketAddr,
    timeout: Duration,
    requests: Requests,
    connection: Option<Connection>,
    number: u32,
}

/// The records of a client in one history.
#[derive(Default)]
pub(super) struct Notes {
    /// The operations, each with the number of its key.
    pub(super) operations: Vec<(usize, Operation)>,
    /// Puts without a response: their indexes in `operations`, and their numbers.
    pub(super) unanswered: Vec<(usize, u64)>,
    /// Versions that GETs returned.
    pub(super) shown: Vec<Shown>,
    /// Tags of multipart versions. They are not used in `If-Match`, which would also need the number of parts.
    pub(super) of_parts: HashSet<Tag>,
    /// Responses that are wrong in any history: bytes that were never written, or invalid HTTP.
    pub(super) wrong: Vec<String>,
}

/// The task of a client in one history.
pub(super) struct Task<'t> {
    /// The prefix of its keys.
    pub(super) prefix: &'t str,
    pub(super) keys: usize,
    pub(super) operations: u64,
    pub(super) seed: u64,
    pub(super) begun: Instant,
}

/// Returns the bytes of a put: its number, followed by bytes derived from it.
fn body(put: u64, size: usize) -> Vec<u8> {
    let mut bytes = format!("{put:020} {size:010}\n").into_bytes();
    let mut random = Random::new(put);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Returns the number of the put that wrote these bytes; `None` if no put did.
fn writer_of(bytes: &[u8]) -> Option<u64> {
    let put = std::str::from_utf8(bytes.get(..20)?).ok()?.parse().ok()?;
    (body(put, bytes.len()) == bytes).then_some(put)
}

impl Client {
    pub(super) fn new(number: u32, address: SocketAddr, target: &Target, timeout: Duration) -> Self {
        Self { address, timeout, requests: Requests::new(target), connection: None, number }
    }

    /// Sends the requests of a history one after the other.
    pub(super) fn work(&mut self, task: &Task<'_>) -> Notes {
        let (mut notes, mut random) = (Notes::default(), Random::new(task.seed));
        let mut known: Vec<Option<Tag>> = vec![None; task.keys];
        for number in 0..task.operations {
            let key = index(random.below(task.keys as u64));
            // Numbers of puts are unique in a run, because every client of every history has its own seed.
            let put = task.seed.wrapping_mul(1_000).wrapping_add(number);
            match random.below(100) {
                0..35 => {
                    let condition = condition(&mut random, known[key]);
                    let size = SIZES[index(random.below(SIZES.len() as u64))];
                    let how = WAYS[index(random.below(WAYS.len() as u64))];
                    self.write(task, key, (put, size, how), condition, &mut notes);
                }
                35..60 => self.read(task, key, "GET", &mut notes),
                60..75 => self.read(task, key, "HEAD", &mut notes),
                75..90 => {
                    let condition = match condition(&mut random, known[key]) {
                        Condition::Absent => Condition::Always,
                        other => other,
                    };
                    self.delete(task, key, condition, &mut notes);
                }
                _ => self.list(task, &mut notes),
            }
            if let Some((key, operation)) = notes.operations.last() {
                let shown = match (operation.call, operation.answer) {
                    (_, Answer::Found(tag)) | (Call::Put { tag, .. }, Answer::Done) => Some(tag),
                    _ => None,
                };
                if let Some(tag) = shown.filter(|tag| !notes.of_parts.contains(tag)) {
                    known[*key] = Some(tag);
                }
            }
        }
        notes
    }

    /// Reads every key once.
    pub(super) fn read_all(&mut self, task: &Task<'_>) -> Notes {
        let mut notes = Notes::default();
        (0..task.keys).for_each(|key| self.read(task, key, "GET", &mut notes));
        notes
    }

    /// Writes a version in one of several ways. Only the last request changes what other clients see.
    fn write(
        &mut self,
        task: &Task<'_>,
        key: usize,
        (put, size, how): (u64, usize, Way),
        condition: Condition,
        notes: &mut Notes,
    ) {
        let (body, name) = (body(put, size), name(task, key));
        let request = match how {
            Way::Put => Some(self.put_request(&name, &body, condition)),
            Way::Copy => self.copy_request(task, &name, &body, condition),
            Way::Parts => self.completion_request(task, &name, &body, condition),
        };
        // A preparing request got no response, so the last request cannot be sent.
        let Some(request) = request else { return };
        let (invoked, answered, returned) = self.exchange(task, &request, "PUT");
        let (tag, answer) = match answered {
            Ok((Head { status: 200, tag: Some(tag), .. }, _)) if how == Way::Put => (Tag(tag), Answer::Done),
            Ok((Head { status: 200, .. }, document)) if how != Way::Put => match tag_in(&document) {
                Some(tag) => {
                    if how == Way::Parts {
                        notes.of_parts.insert(tag);
                    }
                    (tag, Answer::Done)
                }
                None => return notes.wrong.push(format!("{how:?} to {name}: 200 without an entity tag")),
            },
            Ok((Head { status: 412, .. }, _)) => (Tag(0), Answer::Refused),
            Ok((Head { status: 404, .. }, _)) if matches!(condition, Condition::Is(_)) => {
                (Tag(0), Answer::Nothing)
            }
            // A conflict or an overload: nothing was changed.
            Ok((Head { status: 409 | 503, .. }, _)) => return,
            Ok((Head { status, .. }, _)) if status < 500 => {
                return notes.wrong.push(format!("{how:?} to {name}: {status}"));
            }
            _ => {
                notes.unanswered.push((notes.operations.len(), put));
                // No MD5 has so many zeros, so nothing matches it until a GET has returned the version.
                (Tag(u128::from(put)), Answer::Unknown)
            }
        };
        self.note(key, Call::Put { tag, condition }, answer, invoked..returned, notes);
    }

    fn put_request(&mut self, name: &str, body: &[u8], condition: Condition) -> Vec<u8> {
        let head = self.requests.object("PUT", name, Some((UNSIGNED_PAYLOAD, body.len() as u64)), None);
        [with_condition(head, condition).as_bytes(), body].concat()
    }

    /// Puts the bytes under a private key, and requests a copy of it.
    fn copy_request(
        &mut self,
        task: &Task<'_>,
        name: &str,
        body: &[u8],
        condition: Condition,
    ) -> Option<Vec<u8>> {
        let source = format!("sources/{}{}", task.prefix, self.number);
        let put = self.put_request(&source, body, Condition::Always);
        self.exchange(task, &put, "PUT").1.ok().filter(|(head, _)| head.status == 200)?;
        let head = self.requests.copy(&source, name);
        Some(with_condition(head, condition).into_bytes())
    }

    /// Uploads the bytes as the only part of a multipart upload, and requests its completion.
    fn completion_request(
        &mut self,
        task: &Task<'_>,
        name: &str,
        body: &[u8],
        condition: Condition,
    ) -> Option<Vec<u8>> {
        let begin = self.requests.in_upload("POST", name, &[("uploads", "")], 0).to_owned();
        let (_, begun) = self.exchange(task, begin.as_bytes(), "POST").1.ok()?;
        let id = xml::element(&String::from_utf8_lossy(&begun), "UploadId")?;
        let query = [("partNumber", "1"), ("uploadId", id.as_str())];
        let head = self.requests.in_upload("PUT", name, &query, body.len() as u64);
        let part = [head.as_bytes(), body].concat();
        let (head, _) = self.exchange(task, &part, "PUT").1.ok()?;
        let document = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{:032x}</ETag></Part></CompleteMultipartUpload>",
            head.tag?
        );
        let head = self.requests.in_upload("POST", name, &[("uploadId", &id)], document.len() as u64);
        Some([with_condition(head, condition).as_bytes(), document.as_bytes()].concat())
    }

    fn delete(&mut self, task: &Task<'_>, key: usize, condition: Condition, notes: &mut Notes) {
        let name = name(task, key);
        let request = with_condition(self.requests.object("DELETE", &name, None, None), condition);
        let (invoked, answered, returned) = self.exchange(task, request.as_bytes(), "DELETE");
        let answer = match answered {
            Ok((Head { status: 204, .. }, _)) => Answer::Done,
            Ok((Head { status: 412, .. }, _)) => Answer::Refused,
            Ok((Head { status: 409 | 503, .. }, _)) => return,
            Ok((Head { status, .. }, _)) if status < 500 => {
                return notes.wrong.push(format!("DELETE {name}: {status}"));
            }
            _ => Answer::Unknown,
        };
        self.note(key, Call::Delete { condition }, answer, invoked..returned, notes);
    }

    fn read(&mut self, task: &Task<'_>, key: usize, method: &str, notes: &mut Notes) {
        let name = name(task, key);
        let request = self.requests.object(method, &name, None, None).to_owned();
        let (invoked, answered, returned) = self.exchange(task, request.as_bytes(), method);
        let answer = match answered {
            Ok((Head { status: 200, tag: Some(tag), tag_parts, .. }, bytes)) => {
                if tag_parts > 0 {
                    notes.of_parts.insert(Tag(tag));
                }
                if method == "GET" {
                    let Some(put) = writer_of(&bytes) else {
                        return notes
                            .wrong
                            .push(format!("GET {name}: {} bytes that no client wrote", bytes.len()));
                    };
                    notes.shown.push((Tag(tag), put));
                }
                Answer::Found(Tag(tag))
            }
            Ok((Head { status: 404, .. }, _)) => Answer::Nothing,
            Ok((Head { status, .. }, _)) if status < 500 => {
                return notes.wrong.push(format!("{method} {name}: {status}"));
            }
            // A read without a response has no information.
            _ => return,
        };
        self.note(key, Call::Read, answer, invoked..returned, notes);
    }

    /// Lists the keys. A list tells the version of every key, or that it does not exist. A page is assembled from several
    /// tables, so each key counts as a separate operation with its own moment within the request.
    fn list(&mut self, task: &Task<'_>, notes: &mut Notes) {
        let query = [("list-type", "2"), ("prefix", task.prefix)];
        let request = self.requests.bucket("GET", &query).to_owned();
        let (invoked, answered, returned) = self.exchange(task, request.as_bytes(), "GET");
        let Ok((Head { status: 200, .. }, bytes)) = answered else { return };
        let page = String::from_utf8_lossy(&bytes).into_owned();
        let listed: Vec<(String, Option<Tag>)> = xml::elements(&page, "Contents")
            .map(|entry| {
                let text = xml::element(entry, "ETag").unwrap_or_default();
                let tag = Tag::try_from(text.trim_matches('"').to_owned()).ok();
                notes.of_parts.extend(tag.filter(|_| text.contains('-')));
                (xml::element(entry, "Key").unwrap_or_default(), tag)
            })
            .collect();
        let mut expected = (0..task.keys).map(|key| name(task, key)).collect::<Vec<_>>();
        if listed.iter().any(|(key, tag)| tag.is_none() || !expected.contains(key)) {
            return notes
                .wrong
                .push(format!("a list below {} shows a key that was never written", task.prefix));
        }
        for (key, name) in expected.drain(..).enumerate() {
            let answer = match &listed.iter().filter(|(listed, _)| *listed == name).collect::<Vec<_>>()[..] {
                [] => Answer::Nothing,
                [(_, Some(tag))] => Answer::Found(*tag),
                _ => return notes.wrong.push(format!("a list shows {name} twice")),
            };
            self.note(key, Call::Read, answer, invoked..returned, notes);
        }
    }

    fn note(&self, key: usize, call: Call, answer: Answer, time: std::ops::Range<u64>, notes: &mut Notes) {
        let operation =
            Operation { client: self.number, invoked: time.start, returned: time.end, call, answer };
        notes.operations.push((key, operation));
    }

    /// Sends a request and reads its response. Returns the times before and after it.
    fn exchange(&mut self, task: &Task<'_>, request: &[u8], method: &str) -> (u64, Answered, u64) {
        let now = || u64::try_from(task.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let invoked = now();
        let answered = self.answered(request, method);
        if !matches!(&answered, Ok((head, _)) if !head.close) {
            self.connection = None;
        }
        (invoked, answered, now())
    }

    fn answered(&mut self, request: &[u8], method: &str) -> Answered {
        let connection = match self.connection.take() {
            Some(open) => self.connection.insert(open),
            None => self.connection.insert(Connection::open(&self.address.into(), self.timeout)?),
        };
        connection.send(request, None)?;
        let head = connection.read_head()?;
        let mut body = Vec::new();
        if method != "HEAD" {
            connection.read_body(&head, &mut Sink::Collect(&mut body, BODY_BYTES_MAX))?;
        }
        Ok((head, body))
    }
}

/// Returns the entity tag in the response to a copy or a completion.
fn tag_in(document: &[u8]) -> Option<Tag> {
    let text = xml::element(&String::from_utf8_lossy(document), "ETag")?;
    Tag::try_from(xml::unescape(&text).trim_matches('"').to_owned()).ok()
}

fn name(task: &Task<'_>, key: usize) -> String {
    format!("{}k{key}", task.prefix)
}

/// Half of the writes have none.
fn condition(random: &mut Random, known: Option<Tag>) -> Condition {
    match (random.below(4), known) {
        (0, _) => Condition::Absent,
        (1, Some(tag)) => Condition::Is(tag),
        _ => Condition::Always,
    }
}

/// Adds a conditional header to a head. It need not be signed.
fn with_condition(head: &str, condition: Condition) -> String {
    let mut head = head.strip_suffix("\r\n").unwrap_or(head).to_owned();
    match condition {
        Condition::Always => {}
        Condition::Absent => head.push_str("If-None-Match: *\r\n"),
        Condition::Is(tag) => {
            write!(head, "If-Match: \"{:032x}\"\r\n", tag.0).expect("writing to a string does not fail");
        }
    }
    head.push_str("\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_identifies_its_put() {
        for size in SIZES {
            let mut bytes = body(77, size);
            assert_eq!((bytes.len(), writer_of(&bytes)), (size, Some(77)));
            bytes[size - 1] ^= 1;
            assert_eq!(writer_of(&bytes), None);
            assert_eq!(writer_of(&body(77, size)[..size - 1]), None, "a cut one too");
        }
    }

    #[test]
    fn a_condition_is_inserted_before_the_blank_line() {
        let head = with_condition("PUT /k HTTP/1.1\r\nHost: h\r\n\r\n", Condition::Is(Tag(10)));
        assert!(
            head.ends_with("Host: h\r\nIf-Match: \"0000000000000000000000000000000a\"\r\n\r\n"),
            "{head}"
        );
    }
}
