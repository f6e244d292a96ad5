//! Multipart uploads: each object is sent in parts over all connections in parallel, then completed.
//!
//! Objects are uploaded one after the other, so that one upload is measured: bytes per second from the first byte of the first
//! part to the response to the completion, and the time of the completion alone.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cairn_sync::Mutex;
use serde::Serialize;

use crate::failure::{Failure, LoadError};
use crate::http::connection::{Body, Connection, Sink};
use crate::http::request::Requests;
use crate::http::xml;
use crate::objects::content::Content;
use crate::plan::Plan;
use crate::units::ByteCount;

/// Maximum length of a response document.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Maximum number of parts of an upload (AWS).
const PARTS_MAX: u64 = 10_000;

/// The result of the uploads.
#[derive(Clone, Debug, Serialize)]
pub struct MultipartReport {
    /// Objects that were uploaded.
    pub objects: u64,
    /// Parts of each object.
    pub parts: u64,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Time of all uploads.
    pub seconds: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Median time of a completion.
    pub completion_p50_ms: f64,
    /// Longest time of a completion.
    pub completion_max_ms: f64,
}

/// Uploads every key of a plan once.
///
/// # Errors
/// [`LoadError::Usage`] if the sizes allow no multipart upload, [`LoadError::Refused`] if a request fails.
pub fn multipart(plan: &Plan, part_size: ByteCount) -> Result<MultipartReport, LoadError> {
    let content = Content::new(plan.seed);
    let (mut bytes, mut parts, mut completions) = (0, 0, Vec::new());
    let started = Instant::now();
    for number in 0..plan.keys.count {
        let size = plan.keys.size(number).0;
        parts = size.div_ceil(part_size.0.max(1));
        if parts == 0 || parts > PARTS_MAX {
            return Err(LoadError::Usage(format!(
                "{size} bytes make {parts} parts: choose --part-size so that there are 1 to {PARTS_MAX}"
            )));
        }
        let key = plan.keys.name(number);
        let upload = Upload { plan, content: &content, key: &key, size, part_size: part_size.0, parts };
        completions.push(upload.carry_out().map_err(|failure| LoadError::Refused {
            doing: format!("uploading {key} in {parts} parts"),
            failure,
        })?);
        bytes += size;
    }
    let seconds = started.elapsed().as_secs_f64();
    completions.sort_unstable();
    let milliseconds = |at: usize| completions.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    Ok(MultipartReport {
        objects: plan.keys.count,
        parts,
        bytes,
        seconds,
        bytes_per_second: bytes as f64 / seconds,
        completion_p50_ms: milliseconds(completions.len() / 2),
        completion_max_ms: milliseconds(completions.len().saturating_sub(1)),
    })
}

/// One object.
struct Upload<'a> {
    plan: &'a Plan,
    content: &'a Content,
    key: &'a str,
    size: u64,
    part_size: u64,
    parts: u64,
}

impl Upload<'_> {
    /// Creates the upload, sends all parts and completes it. Returns the time of the completion.
    fn carry_out(&self) -> Result<Duration, Failure> {
        let mut requests = Requests::new(&self.plan.target);
        let mut connection = self.connect()?;
        let begun =
            exchange(&mut connection, requests.in_upload("POST", self.key, &[("uploads", "")], 0), None)?;
        let id = xml::element(&begun.1, "UploadId").ok_or(Failure::Protocol("no UploadId"))?;
        let tags = self.send_parts(&id)?;
        let mut document = String::from("<CompleteMultipartUpload>");
        for (number, tag) in (1..).zip(&tags) {
            write!(document, "<Part><PartNumber>{number}</PartNumber><ETag>{tag:032x}</ETag></Part>")
                .expect("writing to a string does not fail");
        }
        document.push_str("</CompleteMultipartUpload>");
        let head = requests.in_upload("POST", self.key, &[("uploadId", &id)], document.len() as u64);
        let request = [head.as_bytes(), document.as_bytes()].concat();
        let started = Instant::now();
        let (_, answer) = exchange(&mut connection, &request, None)?;
        let took = started.elapsed();
        // An error may follow a status of 200 (AWS: CompleteMultipartUpload).
        match xml::element(&answer, "Code") {
            Some(code) => Err(Failure::Status(200, Some(code))),
            None => Ok(took),
        }
    }

    fn connect(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.plan.server, self.plan.timeout)?;
        connection.set_send_buffer(self.plan.send_buffer)?;
        Ok(connection)
    }

    /// Sends the parts over all connections; returns their entity tags in order.
    fn send_parts(&self, id: &str) -> Result<Vec<u128>, Failure> {
        let (next, tags) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        let send = || -> Result<(), Failure> {
            let (mut requests, mut connection) = (Requests::new(&self.plan.target), self.connect()?);
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= self.parts {
                    return Ok(());
                }
                let offset = part * self.part_size;
                let length = (self.size - offset).min(self.part_size);
                let (number, position) = ((part + 1).to_string(), self.content.position(self.key, offset));
                let query = [("partNumber", number.as_str()), ("uploadId", id)];
                let head = requests.in_upload("PUT", self.key, &query, length);
                let body = Body { content: self.content, position, length };
                let (tag, _) = exchange(&mut connection, head, Some(body))?;
                let tag = tag.ok_or(Failure::Protocol("a part without an entity tag"))?;
                tags.lock().push((part, tag));
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.plan.connections).map(|_| scope.spawn(send)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let mut tags = tags.into_inner();
        tags.sort_unstable();
        Ok(tags.into_iter().map(|(_, tag)| tag).collect())
    }
}

/// Sends a request. Returns the entity tag and the document of the response.
fn exchange(
    connection: &mut Connection,
    head: &(impl AsRef<[u8]> + ?Sized),
    body: Option<Body<'_>>,
) -> Result<(Option<u128>, String), Failure> {
    connection.send(head.as_ref(), body)?;
    let head = connection.read_head()?;
    let mut document = Vec::new();
    connection.read_body(&head, &mut Sink::Collect(&mut document, DOCUMENT_BYTES_MAX))?;
    let document = String::from_utf8_lossy(&document).into_owned();
    if head.status != 200 {
        return Err(Failure::Status(head.status, xml::element(&document, "Code")));
    }
    Ok((head.tag, document))
}
