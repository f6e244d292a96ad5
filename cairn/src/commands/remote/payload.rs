//! Bodies of requests to another store.

use std::borrow::Cow;
use std::io::Read;
use std::time::Duration;

use ureq::http::Response;
use ureq::http::request::Builder;
use ureq::{Agent, Body, Error, SendBody};

use crate::s3::signature::sha256;

/// The value of `x-amz-content-sha256` for a body that is not signed.
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// The body of a request.
pub(crate) enum Payload<'a> {
    Bytes(&'a [u8]),
    /// So many bytes, which can be read once.
    Stream(&'a mut dyn Read, u64),
}

impl Payload<'_> {
    pub(super) const fn can_be_repeated(&self) -> bool {
        matches!(self, Self::Bytes(_))
    }

    /// Returns what is signed of it.
    pub(super) fn hash(&self) -> Cow<'static, str> {
        match self {
            Self::Bytes(bytes) => sha256(bytes).into(),
            Self::Stream(..) => UNSIGNED_PAYLOAD.into(),
        }
    }

    pub(super) const fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream(_, size) => *size,
        }
    }
}

/// Sends a request with its body.
pub(super) fn run(
    agent: &Agent,
    builder: Builder,
    payload: &mut Payload<'_>,
    limit: Duration,
) -> Result<Response<Body>, Error> {
    let is_bodiless =
        builder.method_ref().is_some_and(|method| matches!(method.as_str(), "GET" | "HEAD" | "DELETE"));
    match payload {
        Payload::Bytes([]) if is_bodiless => {
            let request = agent.configure_request(builder.body(())?).timeout_global(Some(limit)).build();
            agent.run(request)
        }
        Payload::Bytes(bytes) => {
            let request = agent.configure_request(builder.body(*bytes)?).timeout_global(Some(limit)).build();
            agent.run(request)
        }
        Payload::Stream(content, size) => {
            // A refusal arrives before the content is sent.
            let builder = builder.header("content-length", *size).header("expect", "100-continue");
            let request = builder.body(SendBody::from_reader(content))?;
            agent.run(agent.configure_request(request).timeout_global(Some(limit)).build())
        }
    }
}
