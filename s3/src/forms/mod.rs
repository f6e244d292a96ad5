//! Browser forms (PostObject): the fields, the file and the policy of a `multipart/form-data` body.
//!
//! Source: "Browser-Based Uploads Using POST" and API Reference, POST Object (AWS); RFC 7578; RFC 2046 section 5.1. Everything
//! here except [`reading`] and [`file`] is pure. `docs/internals/form-uploads.md` describes the whole.

pub(crate) mod boundary;
mod disposition;
pub(crate) mod fields;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod parts;
pub(crate) mod policy;
pub(crate) mod reading;

pub(crate) use reading::Form;
