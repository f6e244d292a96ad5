//! Bodies of the fuzz targets in `fuzz/`: properties of requests to the data plane that hold for any bytes.
//!
//! `cargo test` runs them on the stored corpora and on mutations of them.

use crate::body::chunked::{Decoder, decode_in_pieces};
use crate::compatibility::Compatibility;
use crate::cors::configuration;
use crate::forms::boundary::Delimiter;
use crate::forms::fields::FormFields;
use crate::forms::file::scan_in_pieces;
use crate::forms::parts::read_in_pieces;
use crate::forms::policy::PostPolicy;
use crate::headers::{object_lock, tagging};
use crate::lifecycle::{reading, writing};
use crate::limits::{FORM_FIELD_BYTES_MAX, FORM_FIELDS_MAX};
use crate::multipart::named_parts;
use crate::operations::Handling;
use crate::ops::{
    get_object_lock_configuration, get_object_retention, list_multipart_uploads, list_object_versions,
    list_objects, list_objects_v2, named_objects, put_object_legal_hold, put_object_lock_configuration,
    put_object_retention,
};
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::request::target::Target;
use crate::routing::{Route, route};
use crate::xml::{reader, writer};
use cairn_cors::{CrossOrigin, Rules};
use cairn_engine::limits::{LIFECYCLE_RULES_MAX, OBJECT_TAGS_MAX};
use cairn_engine::{BucketSettings, ChecksumAlgorithm, LifecycleRule, ListPosition, Retention};
use cairn_http1::Method;
use cairn_identity::fuzz::{TextRequest, authenticator, chunk_signatures, with_valid_signature};
use cairn_model::Timestamp;
use cairn_transfer::list_token;
use std::collections::BTreeSet;

/// A function that a fuzz target calls with its input. It panics if a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate, by the names of their targets.
pub const BODIES: &[(&str, Body)] = &[
    ("s3_chunked", s3_chunked),
    ("s3_cors", s3_cors),
    ("s3_delete_objects", s3_delete_objects),
    ("s3_lifecycle", s3_lifecycle),
    ("s3_form", s3_form),
    ("s3_list_query", s3_list_query),
    ("s3_lock", s3_lock),
    ("s3_named_parts", s3_named_parts),
    ("s3_signed_meaning", s3_signed_meaning),
    ("s3_tags", s3_tags),
    ("s3_uploads_query", s3_uploads_query),
    ("s3_xml", s3_xml),
];

/// Checks `aws-chunked` bodies. Cut anywhere, a body gives the same result as in one piece, and never more content than was
/// declared. The first byte says whether chunks are signed and which checksum the trailer has, the second one how to cut, and
/// the next two are the declared size.
///
/// # Panics
/// If a property does not hold.
pub fn s3_chunked(data: &[u8]) {
    let Some((&[kind, step, high, low], body)) = data.split_first_chunk() else { return };
    let size = u64::from(u16::from_be_bytes([high, low]));
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let decoder = || {
        let signatures = (kind & 1 == 1).then(|| Box::new(chunk_signatures(seed)));
        let declared = ChecksumAlgorithm::ALL.get(usize::from(kind >> 1));
        Decoder::new(size, signatures, declared.copied())
    };
    let whole = decode_in_pieces(decoder(), body, body.len());
    assert_eq!(whole, decode_in_pieces(decoder(), body, 1 + usize::from(step)));
    if let Ok((content, checksum)) = whole {
        assert_eq!(content.len() as u64, size);
        assert_eq!(checksum.is_some(), usize::from(kind >> 1) < ChecksumAlgorithm::ALL.len());
    }
}

/// Checks browser forms with the boundary `xyz`. Cut anywhere, a form gives the same fields and the same file as in one piece,
/// and a file never contains the delimiter. Accepted fields keep the limits, and those that become headers are valid ones. A
/// policy that a form has is checked. The first byte says how to cut.
///
/// # Panics
/// If a property does not hold.
pub fn s3_form(data: &[u8]) {
    let Some((&step, form)) = data.split_first() else { return };
    let _ = Delimiter::of_content_type(form);
    let delimiter = || Delimiter::new(b"xyz").expect("a valid boundary");
    let size = 1 + usize::from(step);
    let whole = read_in_pieces(delimiter(), form, form.len());
    assert_eq!(whole, read_in_pieces(delimiter(), form, size));
    let Ok(Some((fields, filename, rest))) = whole else { return };
    let file = scan_in_pieces(delimiter(), &rest, rest.len());
    assert_eq!(file, scan_in_pieces(delimiter(), &rest, size));
    if let Some((content, after)) = file {
        assert_eq!(rest[..after], [&content[..], b"\r\n--xyz"].concat());
        assert!(!content.windows(7).any(|bytes| bytes == b"\r\n--xyz"));
    }
    let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(fields.len() <= FORM_FIELDS_MAX && bytes <= FORM_FIELD_BYTES_MAX);
    let Ok(form) = FormFields::new(fields, &filename) else { return };
    for (name, value) in form.headers().unwrap_or_default() {
        assert!(cairn_http1::is_token(name) && cairn_http1::is_field_value(value), "{name}");
    }
    if let Some(policy) = form.get("policy").and_then(|policy| PostPolicy::parse(policy).ok()) {
        let _ = policy.check(&form, "photos", Timestamp(0));
    }
}

/// Checks CORS configurations, in XML and as stored. A configuration survives writing and reading in both forms, and a
/// rule that allows a request names its method.
///
/// # Panics
/// If a property does not hold.
pub fn s3_cors(data: &[u8]) {
    let from_xml =
        reader::parse(data).ok().and_then(|root| configuration::read(&root, Compatibility::Extended).ok());
    if let Some(rules) = &from_xml {
        let stored = rules.encode();
        assert_eq!(Rules::decode(&stored).as_ref(), Some(rules));
        let written = reader::parse(&configuration::document(rules).finish()).expect("well-formed");
        assert_eq!(configuration::read(&written, Compatibility::Extended).ok().as_ref(), Some(rules));
    }
    let Some(rules) = from_xml.or_else(|| Rules::decode(data)) else { return };
    for origin in rules.rules().iter().flat_map(|rule| &rule.origins) {
        let headers = rules.rules().first().and_then(|rule| rule.allowed_headers.first());
        let cross_origin = CrossOrigin { origin, method: "GET", headers: headers.map_or("", String::as_str) };
        if let Some(admission) = rules.admit(cross_origin, Compatibility::Extended.origin_matching()) {
            assert!(admission.rule.methods.iter().any(|method| method == "GET"));
        }
    }
}

/// Checks the documents and headers of object lock at a fixed time. An accepted retention is in the future, and
/// survives writing and reading.
///
/// # Panics
/// If a property does not hold.
pub fn s3_lock(data: &[u8]) {
    const NOW: Timestamp = Timestamp(1_795_237_200_000);
    let accepted = |retention: Retention| {
        assert!(retention.until > NOW);
        let written =
            reader::parse(&get_object_retention::document(retention).finish()).expect("well-formed");
        assert_eq!(put_object_retention::parse_document(&written, NOW).ok(), Some(Some(retention)));
    };
    if let Ok(root) = reader::parse(data) {
        if let Ok(Some(retention)) = put_object_retention::parse_document(&root, NOW) {
            accepted(retention);
        }
        if let Ok(default) = put_object_lock_configuration::default_retention(&root) {
            let written = get_object_lock_configuration::document(default).finish();
            let written = reader::parse(&written).expect("well-formed");
            assert_eq!(put_object_lock_configuration::default_retention(&written).ok(), Some(default));
        }
        let _ = put_object_legal_hold::parse_document(&root);
    }
    let query = Query::default();
    let settings = BucketSettings { object_lock: true, ..BucketSettings::default() };
    let headers: &[(&str, &[u8])] =
        &[("x-amz-object-lock-mode", b"COMPLIANCE"), ("x-amz-object-lock-retain-until-date", data)];
    if let Ok(lock) = object_lock::of_new_version(Fields::new(headers, &query), &settings, NOW) {
        accepted(lock.retention.expect("the headers name a retention"));
    }
}

/// Checks tags in a header and in a document. Accepted tags are few, have different keys, and survive writing and reading.
///
/// # Panics
/// If a property does not hold.
pub fn s3_tags(data: &[u8]) {
    let query = Query::default();
    let headers: &[(&str, &[u8])] = &[("x-amz-tagging", data)];
    let of_header = tagging::from_request(Fields::new(headers, &query)).ok();
    let read = |body: &[u8]| {
        let document = reader::parse(body).ok()?;
        tagging::from_document(&document, OBJECT_TAGS_MAX, "Tags").ok()
    };
    for tags in of_header.into_iter().chain(read(data)) {
        let keys: BTreeSet<&str> = tags.iter().map(|(key, _)| key).collect();
        assert!(tags.len() <= OBJECT_TAGS_MAX && keys.len() == tags.len());
        assert_eq!(read(&tagging::document(&tags).finish()), Some(tags));
    }
}

/// Checks a lifecycle configuration. Accepted rules do something, and survive writing and reading.
///
/// # Panics
/// If a property does not hold.
pub fn s3_lifecycle(data: &[u8]) {
    let read = |body: &[u8]| reading::read(&reader::parse(body).ok()?, Timestamp(1)).ok();
    let Some(rules) = read(data) else { return };
    assert!(rules.len() <= LIFECYCLE_RULES_MAX);
    let written = writing::document(rules.iter()).unwrap_or_else(|_| panic!("XML brought them"));
    let again = read(&written.finish()).expect("what is written is valid");
    assert_eq!(again.len(), rules.len());
    for (rule, again) in rules.into_iter().zip(again) {
        let is_about_tags = !rule.tags.is_empty();
        assert!(rule.has_action() && rule.tags.len() <= OBJECT_TAGS_MAX);
        assert!(!is_about_tags || !(rule.expired_delete_markers || rule.abort_uploads_days.is_some()));
        assert_eq!(again.s3_id, Some(rule.id_in_s3()));
        assert_eq!(again, LifecycleRule { id: again.id, s3_id: again.s3_id.clone(), ..rule });
    }
}

/// Checks the query of a list and its continuation token. A page has at most 1000 entries, and tokens decode to the
/// position that they were made of.
///
/// # Panics
/// If a property does not hold.
pub fn s3_list_query(data: &[u8]) {
    for position in [ListPosition::AfterKey(data.to_vec()), ListPosition::AfterPrefix(data.to_vec())] {
        // A position that is longer than any key gives a token that is refused.
        let fits = data.len() <= cairn_model::OBJECT_KEY_BYTES_MAX;
        assert_eq!(list_token::to_position(&list_token::of_position(&position)), fits.then_some(position));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(position) = list_token::to_position(text) {
        assert_eq!(list_token::of_position(&position), text, "a position has one token");
    }
    let Ok(query) = Query::parse(Some(text)) else { return };
    list_objects::check_query(&query);
    list_objects_v2::check_query(&query);
    list_object_versions::check_query(&query);
}

/// Checks the body of DeleteObjects. It names 1 to 1000 objects, and the response can name each of them.
///
/// # Panics
/// If a property does not hold.
pub fn s3_delete_objects(data: &[u8]) {
    named_objects::check_list(data);
}

/// Checks the body of a completion. The parsed parts are in order, and their digests have the right lengths.
///
/// # Panics
/// If a property does not hold.
pub fn s3_named_parts(data: &[u8]) {
    named_parts::check_list(data);
}

/// Checks the query of a list of uploads. A page has at most 1000 entries, and a truncated one has markers.
///
/// # Panics
/// If a property does not hold.
pub fn s3_uploads_query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(query) = Query::parse(Some(text)) else { return };
    list_multipart_uploads::check_query(&query);
}

/// Checks a request and a tampered copy of it. If the signature is valid for both, both have the same method, bucket,
/// key, parameters and operation. The first line of the input says what is changed; see [`tampered`].
///
/// # Panics
/// If a signature made for one request is valid for another.
pub fn s3_signed_meaning(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else { return };
    let Some(signed) =
        TextRequest::parse(&data[end + 1..]).and_then(|request| with_valid_signature(&request))
    else {
        return;
    };
    let authenticator = authenticator();
    if signed.authenticate(&authenticator).is_err() {
        return;
    }
    let Some(changed) = tampered(&signed, &data[..end]) else { return };
    if changed.authenticate(&authenticator).is_ok()
        && let (Some(meant), Some(understood)) = (meaning(&signed), meaning(&changed))
    {
        assert_eq!(meant, understood, "one signature, two requests: {signed:?} {changed:?}");
    }
}

/// Changes a request. `what` is a letter for the part of the request, a byte for the position, and a text. With a
/// lower-case letter the text is inserted, with an upper-case letter it replaces as many bytes.
fn tampered(request: &TextRequest, what: &[u8]) -> Option<TextRequest> {
    let [part, place, text @ ..] = what else { return None };
    let mut changed = request.clone();
    let insert = |old: &[u8]| {
        let at = usize::from(*place) % (old.len() + 1);
        let taken = if part.is_ascii_uppercase() { text.len() } else { 0 };
        let rest = old.get(at + taken..).unwrap_or_default();
        [&old[..at], text, rest].concat()
    };
    let insert_text = |old: &str| String::from_utf8(insert(old.as_bytes())).ok();
    match part.to_ascii_lowercase() {
        b'm' => changed.method = insert_text(&changed.method)?,
        b'p' => changed.path = insert_text(&changed.path)?,
        b'q' => changed.query = Some(insert_text(changed.query.as_deref().unwrap_or_default())?),
        b'h' => {
            let number = usize::from(*place) % changed.headers.len().max(1);
            let (_, value) = changed.headers.get_mut(number)?;
            *value = insert(value).trim_ascii().to_vec();
        }
        b'n' => {
            let colon = text.iter().position(|&byte| byte == b':')?;
            let name = std::str::from_utf8(&text[..colon]).ok()?.to_ascii_lowercase();
            changed.headers.push((name, text[colon + 1..].trim_ascii().to_vec()));
        }
        _ => return None,
    }
    Some(changed)
}

#[derive(PartialEq, Eq, Debug)]
struct Meaning {
    operation: &'static str,
    target: Target,
    parameters: Vec<(String, String)>,
    amz: Vec<(String, Vec<u8>)>,
}

/// Returns what a request asks for, as far as this server acts on it; `None` if it is refused.
fn meaning(request: &TextRequest) -> Option<Meaning> {
    let target = Target::parse(&request.path).ok()?;
    let query = Query::parse(request.query.as_deref()).ok()?;
    let headers: Vec<(&str, &[u8])> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
    let fields = Fields::new(&headers, &query);
    fields.check_single().ok()?;
    let method = Method::from_bytes(request.method.as_bytes()).ok()?;
    let Route::Operation(row) = route(Compatibility::Extended, &method, target.resource(), &query, fields)
    else {
        return None;
    };
    let Handling::Implemented(_) = row.handling else { return None };
    if !target.bucket_text().is_empty() {
        target.bucket().ok()?;
    }
    if !target.key_text().is_empty() {
        target.key().ok()?;
    }
    // Signatures cover the sorted parameters, on AWS too: a signature of a repeated parameter covers both orders. The
    // parameters of the signature itself are not part of the meaning.
    let mut parameters: Vec<(String, String)> = query
        .iter()
        .filter(|(name, _)| !name.starts_with("X-Amz-"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    parameters.sort();
    // The `x-amz-*` headers must be signed, and white space within them is not significant.
    let mut amz: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("x-amz-")) {
        let words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        amz.push(((*name).to_owned(), words.collect::<Vec<_>>().join(&b' ')));
    }
    amz.sort();
    Some(Meaning { operation: row.name, target, parameters, amz })
}

/// Checks XML bodies. A parsed document survives writing and reading, and is not deeper than allowed.
///
/// # Panics
/// If a property does not hold.
pub fn s3_xml(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let mut xml = writer::XmlWriter::with_capacity(0);
        xml.open_root("A");
        xml.text("B", text);
        xml.close("A");
        let read = reader::parse(&xml.finish()).expect("what is written is well-formed");
        let back = read.child("B").expect("it was written").text();
        assert!(back == text || !writer::xml_can_represent(text));
    }
    let Ok(root) = reader::parse(data) else { return };
    assert!(depth(&root) <= cairn_xml::DEPTH_MAX);
    if is_plain(&root) {
        let mut xml = writer::XmlWriter::with_capacity(data.len());
        write(&mut xml, &root);
        assert_eq!(reader::parse(&xml.finish()), Ok(root));
    }
}

fn depth(element: &reader::Element) -> usize {
    1 + element.children().iter().map(depth).max().unwrap_or(0)
}

/// Returns whether all names are ASCII letters and digits, and all texts can be written.
fn is_plain(element: &reader::Element) -> bool {
    let name = element.name();
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && writer::xml_can_represent(element.text())
        && element.children().iter().all(is_plain)
}

fn write(xml: &mut writer::XmlWriter, element: &reader::Element) {
    xml.open(element.name());
    xml.only_text(element.text());
    element.children().iter().for_each(|child| write(xml, child));
    xml.close(element.name());
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
