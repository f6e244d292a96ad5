//! Limits that more than one file of this crate uses.

/// Largest object or part that one request creates, in bytes: 5 GiB (AWS: "Uploading objects", "Multipart upload
/// limits", "Copying objects").
pub(crate) const REQUEST_PAYLOAD_BYTES_MAX: u64 = 5 << 30;

/// Most bytes of a browser form before its file, with the headers of the parts: as many as a request head may have. They are
/// held in memory before the client is known.
pub(crate) const FORM_BYTES_BEFORE_FILE_MAX: usize = 32 * 1024;

/// Most bytes of all fields before the file together, names and values (AWS: POST Object, "form fields").
pub(crate) const FORM_FIELD_BYTES_MAX: usize = 20 * 1024;

/// Most fields before the file. A form of an application has about a dozen.
pub(crate) const FORM_FIELDS_MAX: usize = 100;

/// Longest headers of a part of a form in bytes. A name of a file has at most 255 characters, and a few other headers are
/// short.
pub(crate) const FORM_PART_HEADER_BYTES_MAX: usize = 4 * 1024;

/// Most bytes after the file of a form: fields that nobody reads, and the last delimiter.
pub(crate) const FORM_TRAILING_BYTES_MAX: usize = 20 * 1024;
