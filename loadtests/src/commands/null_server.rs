//! A minimal HTTP server that measures the generator's own limit.
//!
//! It verifies no signature, stores nothing and uses no disk. A GET of any key returns the content that `content` defines, so
//! `--verify` works; a PUT is read and discarded; a list is always the same page. Blocking, with a thread per connection. It
//! trusts its client, so do not use it for anything else.

use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustix::net::sockopt::set_socket_send_buffer_size;

use crate::failure::{LoadError, while_doing};
use crate::objects::content::Content;

/// Number of keys of the page that every list returns.
const PAGE_KEYS: u32 = 1_000;
const STACK_BYTES: usize = 128 * 1024;
/// As large as the client's buffer, so that both sides make the same number of system calls.
const BUFFER_BYTES: usize = 256 * 1024;
/// By default the kernel queues several MiB in a socket, which are no longer in the CPU cache when the client reads them.
const SEND_BUFFER_BYTES: usize = 192 * 1024;

/// The responses of the server.
#[derive(Debug)]
struct Answers {
    content: Content,
    object_bytes: u64,
    page: String,
}

/// Serves connections until the process ends.
///
/// # Errors
/// [`LoadError::Io`] if a connection cannot be accepted or given a thread.
pub fn serve(listener: &TcpListener, object_bytes: u64, seed: u64) -> Result<(), LoadError> {
    let answers = Arc::new(Answers { content: Content::new(seed), object_bytes, page: page() });
    for stream in listener.incoming() {
        let stream = stream.map_err(while_doing("accepting a connection"))?;
        let answers = Arc::clone(&answers);
        // Errors of a connection are ignored.
        let serve = move || drop(serve_connection(stream, &answers));
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(serve)
            .map_err(while_doing("starting a thread for a connection"))?;
    }
    Ok(())
}

fn page() -> String {
    let contents: String = (0..PAGE_KEYS)
        .map(|number| {
            format!(
                "<Contents><Key>load/{number:010}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                 <ETag>&quot;00000000000000000000000000000000&quot;</ETag><Size>4096</Size>\
                 <StorageClass>STANDARD</StorageClass></Contents>"
            )
        })
        .collect();
    format!("<ListBucketResult><KeyCount>{PAGE_KEYS}</KeyCount>{contents}</ListBucketResult>")
}

fn serve_connection(mut stream: TcpStream, answers: &Answers) -> io::Result<()> {
    stream.set_nodelay(true)?;
    set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    loop {
        let Some(end) = head_end(&buffer[..filled]) else {
            match stream.read(&mut buffer[filled..])? {
                0 => return Ok(()),
                count => filled += count,
            }
            continue;
        };
        let request = parse(&buffer[..end]).ok_or(io::ErrorKind::InvalidData)?;
        let response = answers.response(&request);
        let body_bytes = request.body_bytes;
        discard(&mut stream, &mut buffer, &mut filled, end, body_bytes)?;
        response.send(&mut stream, answers)?;
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// Discards the rest of the body, and moves the bytes after it to the front of the buffer.
fn discard(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    filled: &mut usize,
    head: usize,
    body_bytes: u64,
) -> io::Result<()> {
    let buffered = (*filled - head).min(usize::try_from(body_bytes).unwrap_or(usize::MAX));
    buffer.copy_within(head + buffered..*filled, 0);
    *filled -= head + buffered;
    let mut left = body_bytes - buffered as u64;
    while left > 0 {
        let limit = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.read(&mut buffer[..limit])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}

struct Request<'a> {
    method: &'a str,
    /// Path after the bucket; empty for the bucket itself.
    key: &'a str,
    query: &'a str,
    body_bytes: u64,
    range: Option<(u64, u64)>,
}

fn parse(head: &[u8]) -> Option<Request<'_>> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?, first.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = path.strip_prefix('/')?.split_once('/').map_or("", |(_, key)| key);
    let mut request = Request { method, key, query, body_bytes: 0, range: None };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            request.body_bytes = value.parse().ok()?;
        } else if name.eq_ignore_ascii_case("range") {
            let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
            request.range = Some((first.parse().ok()?, last.parse().ok()?));
        }
    }
    Some(request)
}

/// A response that does not borrow from the request.
enum Response {
    Nothing(&'static str),
    Page,
    Object { status: &'static str, position: crate::objects::content::Position, bytes: u64 },
}

impl Answers {
    fn response(&self, request: &Request<'_>) -> Response {
        match request.method {
            "GET" if request.key.is_empty() || request.query.contains("list-type") => Response::Page,
            "GET" => {
                let (status, first, bytes) = match request.range {
                    Some((first, last)) => ("206 Partial Content", first, (last - first).saturating_add(1)),
                    None => ("200 OK", 0, self.object_bytes),
                };
                Response::Object { status, position: self.content.position(request.key, first), bytes }
            }
            "DELETE" => Response::Nothing("204 No Content"),
            _ => Response::Nothing("200 OK"),
        }
    }
}

impl Response {
    fn send(&self, stream: &mut TcpStream, answers: &Answers) -> io::Result<()> {
        match self {
            Self::Nothing("204 No Content") => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"),
            Self::Nothing(status) => {
                stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())
            }
            Self::Page => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answers.page.len());
                stream.write_all(head.as_bytes())?;
                stream.write_all(answers.page.as_bytes())
            }
            Self::Object { status, position, bytes } => {
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\n\r\n");
                let (mut head, mut position, mut left) = (head.as_bytes(), *position, *bytes);
                while !head.is_empty() || left > 0 {
                    let [first, second] = answers.content.slices(position, left);
                    let written = stream.write_vectored(&[IoSlice::new(head), first, second])?;
                    let of_head = written.min(head.len());
                    head = &head[of_head..];
                    position = answers.content.advance(position, written - of_head);
                    left -= (written - of_head) as u64;
                }
                Ok(())
            }
        }
    }
}
