//! Uploads and downloads of objects, as streams.

use std::io::{Error as IoError, ErrorKind, Read};

use serde_json::Value;
use ureq::http::{self, StatusCode};
use ureq::{Body, SendBody};

use crate::client::{Client, Request, Response};
use crate::failure::Failure;

/// Maximum length of an error response to a download.
const ERROR_BYTES_MAX: u64 = 1 << 20;

/// The content of an object while it arrives.
pub(crate) struct Download {
    pub(crate) size: u64,
    /// The entity tag, without quotes.
    pub(crate) etag: Option<String>,
    pub(crate) content: Box<dyn Read>,
}

impl Client {
    /// Uploads `size` bytes as an object's content. Returns the record of the new version.
    pub(crate) fn upload(
        &self,
        request: &Request,
        headers: &[(&str, String)],
        content: impl Read,
        size: u64,
    ) -> Result<Value, Failure> {
        let mut content = Exactly::new(content, size);
        let mut builder = self
            .head(request, Some(self.token()?))
            .header("content-length", size)
            // A refusal arrives before the content is sent.
            .header("expect", "100-continue");
        for (name, value) in headers {
            builder = builder.header(*name, value);
        }
        let sent = builder.body(SendBody::from_reader(&mut content));
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        let response = self.run(request, sent);
        // Content that cannot be read is no fault of the server.
        if let (Err(_), Some(why)) = (&response, content.failure) {
            return Err(format!("the content was not uploaded: {why}").into());
        }
        self.success(request, response?)
    }

    /// Sends bytes as the body of a request. Returns the response, whatever its status.
    pub(crate) fn send_bytes(
        &self,
        request: &Request,
        headers: &[(String, String)],
        content: &[u8],
    ) -> Result<Response, Failure> {
        let sent = self.with_headers(request, headers)?.body(content);
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        self.run(request, sent)
    }

    /// Sends `size` bytes as the body of a request. Returns the response, whatever its status. The server may answer before the
    /// content is read.
    pub(crate) fn send_stream(
        &self,
        request: &Request,
        headers: &[(String, String)],
        content: &mut dyn Read,
        size: u64,
    ) -> Result<Response, Failure> {
        let mut content = Exactly::new(content, size);
        let builder = self.with_headers(request, headers)?;
        let builder = builder.header("content-length", size).header("expect", "100-continue");
        let sent = builder.body(SendBody::from_reader(&mut content));
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        self.run(request, sent)
    }

    fn with_headers(
        &self,
        request: &Request,
        headers: &[(String, String)],
    ) -> Result<http::request::Builder, Failure> {
        let begun = self.head(request, Some(self.token()?));
        Ok(headers.iter().fold(begun, |builder, (name, value)| builder.header(name, value)))
    }

    /// Begins a download. The content must be read to its end.
    pub(crate) fn download(&self, request: &Request) -> Result<Download, Failure> {
        self.download_range(request, None)
    }

    /// Begins a download of so many bytes at an offset, or of all. The content must be read to its end.
    pub(crate) fn download_range(
        &self,
        request: &Request,
        range: Option<(u64, u64)>,
    ) -> Result<Download, Failure> {
        let builder = self.head(request, Some(self.token()?));
        let builder = match range {
            Some((first, size)) => {
                builder.header("range", format!("bytes={first}-{}", first + size.saturating_sub(1)))
            }
            None => builder,
        };
        let sent = builder.body(());
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        let mut response = self.send(request, sent)?;
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|text| text.to_str().ok());
        let size = header("content-length").and_then(|text| text.parse().ok());
        let etag = header("etag").map(|tag| tag.trim_matches('"').to_owned());
        // A range that is all of the object may be answered as if there were none.
        let fits = match range {
            None => status == StatusCode::OK,
            Some((first, bytes)) => {
                size == Some(bytes)
                    && (status == StatusCode::PARTIAL_CONTENT || (status == StatusCode::OK && first == 0))
            }
        };
        match size.filter(|_| fits) {
            Some(size) => {
                let content = Exactly::new(response.into_body().into_reader(), size);
                Ok(Download { size, etag, content: Box::new(content) })
            }
            None => {
                let read = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_to_vec();
                let body = read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Err(self.refusal(request, &Response { status, body }))
            }
        }
    }

    /// Begins a download of unknown length. Reading it fails if the response is cut.
    pub(crate) fn download_stream(&self, request: &Request) -> Result<impl Read + use<>, Failure> {
        let sent = self.head(request, Some(self.token()?)).body(());
        let sent = sent.map_err(|error| Failure::WrongUsage(format!("the request is invalid: {error}")))?;
        let mut response = self.send(request, sent)?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response.into_body().into_reader());
        }
        let read = response.body_mut().with_config().limit(ERROR_BYTES_MAX).read_to_vec();
        let body = read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Err(self.refusal(request, &Response { status, body }))
    }

    /// Sends a request. Returns the response, whose body has not been read.
    pub(super) fn send(
        &self,
        request: &Request,
        sent: http::Request<impl ureq::AsSendBody>,
    ) -> Result<http::Response<Body>, Failure> {
        let agent = self.agent()?;
        let sent = agent.configure_request(sent).timeout_global(Some(request.timeout)).build();
        agent.run(sent).map_err(|error| self.no_response(request, &error))
    }
}

/// Content whose length is known. Another length is an error, so that no part of a file passes for the whole.
struct Exactly<R> {
    content: R,
    left: u64,
    /// The reason why the content could not be read.
    failure: Option<String>,
}

impl<R: Read> Exactly<R> {
    const fn new(content: R, size: u64) -> Self {
        Self { content, left: size, failure: None }
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.content.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(IoError::new(ErrorKind::UnexpectedEof, "the content is shorter than announced"));
        }
        self.left -= read as u64;
        // Before the last bytes are passed on: without them, nothing is stored.
        if self.left == 0 && self.content.read(&mut [0])? > 0 {
            return Err(IoError::new(ErrorKind::InvalidData, "the content is longer than announced"));
        }
        Ok(read)
    }
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        let read = self.exact(buffer);
        if let Err(error) = &read {
            self.failure = Some(error.to_string());
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_another_length_is_an_error() {
        let read = |content: &[u8], size| {
            let mut text = Vec::new();
            Exactly::new(content, size).read_to_end(&mut text).map(|_| text).ok()
        };
        assert_eq!(read(b"abc", 3), Some(b"abc".to_vec()));
        assert_eq!(read(b"abcd", 3), None);
        assert_eq!(read(b"ab", 3), None);
        assert_eq!(read(b"", 0), Some(Vec::new()));
    }
}
