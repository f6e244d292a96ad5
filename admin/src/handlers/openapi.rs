//! The OpenAPI 3.1 document of the API.
//!
//! It follows from the table of routes, and the schemas of bodies from the types of `cairn_api`. The end-to-end tests check
//! a running server against the document.

use std::sync::OnceLock;

use cairn_api::{BucketName, CapabilityToken, Error, Id, ObjectKey, Schemas, TypeSchema, schema_of};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::operation::{Access, Content, Occurrence, Operation};
use crate::reply::Reply;
use crate::request::path::variables;

const INTRODUCTION: &str = "The management plane of a Cairn server. Path segments are percent-decoded once; a key is the \
     rest of the path, slashes included. Unknown fields and parameters are refused. \
     An optional member of a request that is null counts as absent; in a PATCH, null removes the value. Every response has an x-request-id \
     header; a valid one in the request is used again.";

/// Answers `GET /api/v1/openapi.json`. The document is made by the first call.
pub(crate) fn document(operations: impl Iterator<Item = (&'static str, &'static Operation)>) -> Reply {
    static DOCUMENT: OnceLock<Vec<u8>> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| describe(operations).to_string().into_bytes());
    Reply::bytes(StatusCode::OK, "application/json", text.clone())
}

/// Returns the whole document, of operations with their tags.
pub(crate) fn describe(operations: impl Iterator<Item = (&'static str, &'static Operation)>) -> Value {
    let (mut paths, mut schemas): (Map<String, Value>, _) = (Map::new(), Schemas::default());
    for (tag, operation) in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        let method = operation.method.as_str().to_ascii_lowercase();
        path[method] = describe_operation(tag, operation, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cairn management API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "securitySchemes": {
                "management_token": {"type": "http", "scheme": "bearer", "description": "The system token, or a management token."},
                "root_credential": {"type": "http", "scheme": "basic", "description": "The root access key and secret key."},
                "scrape_token": {"type": "http", "scheme": "bearer", "description": "The scrape token of the metrics."},
            },
        },
    })
}

fn describe_operation(tag: &str, operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [tag],
        "security": security(operation.access),
        "responses": responses(operation, schemas),
    });
    if let Access::Roles(roles) = operation.access {
        let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
        described["x-roles"] = names.into();
    }
    let in_path = variables(operation.path).map(|name| ("path", name, path_schema(name), true));
    let in_query = operation.query.unwrap_or_default().iter();
    let in_query = in_query.filter(|parameter| parameter.occurrence != Occurrence::Family).map(|parameter| {
        ("query", parameter.name, parameter.schema, parameter.occurrence == Occurrence::Required)
    });
    let parameters: Vec<Value> = in_path
        .chain(in_query)
        .map(|(place, name, schema, is_required)| {
            json!({"name": name, "in": place, "required": is_required, "schema": schemas.request(schema)})
        })
        .collect();
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(request) = operation.request {
        let content = content(request.content, |schema| schemas.request(schema));
        described["requestBody"] = json!({"required": request.is_required, "content": content});
    }
    described
}

/// Returns the schema of a variable segment of a path.
fn path_schema(name: &str) -> TypeSchema {
    match name {
        "bucket" => schema_of::<BucketName>(),
        "key" => schema_of::<ObjectKey>(),
        "token" => schema_of::<CapabilityToken>(),
        "request_id" => schema_of::<String>(),
        _ => schema_of::<Id>(),
    }
}

fn security(access: Access) -> Value {
    match access {
        Access::Public | Access::Redirected | Access::Signed => json!([]),
        Access::Scraper => json!([{"scrape_token": []}]),
        Access::Roles(_) => json!([{"management_token": []}, {"root_credential": []}]),
    }
}

fn content(content: Content, mut reference: impl FnMut(TypeSchema) -> Value) -> Value {
    match content {
        Content::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        Content::Bytes => json!({"*/*": {"schema": {"type": "string", "format": "binary"}}}),
        Content::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
    }
}

fn responses(operation: &Operation, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for success in operation.successes {
        let mut response = json!({"description": success.meaning});
        if let Some(body) = success.content {
            response["content"] = content(body, |schema| schemas.response(schema));
        }
        responses.insert(success.status.to_string(), response);
    }
    let error = content(Content::Json(schema_of::<Error>()), |schema| schemas.response(schema));
    for (status, codes) in errors(operation) {
        let known = json!({"description": codes.join(", "), "content": error});
        responses.entry(status.to_string()).or_insert(known);
    }
    Value::Object(responses)
}

/// Returns the error codes of an operation by status: those that all have, those of its kind, and its own.
fn errors(operation: &Operation) -> Vec<(u16, Vec<&'static str>)> {
    let mut codes: Vec<(u16, &'static str)> = Vec::new();
    if operation.access != Access::Public {
        codes.extend([(400, "INVALID_REQUEST"), (401, "UNAUTHENTICATED"), (429, "TOO_MANY_REQUESTS")]);
        codes.extend([(500, "INTERNAL_ERROR"), (503, "NOT_READY")]);
    }
    if matches!(operation.access, Access::Roles(_)) {
        codes.push((403, "FORBIDDEN"));
    }
    if operation.request.is_some() {
        codes.extend([(408, "INVALID_REQUEST"), (411, "INVALID_REQUEST"), (413, "PAYLOAD_TOO_LARGE")]);
    }
    if operation.is_recorded() {
        codes.push((507, "STORAGE_FULL"));
    }
    codes.extend_from_slice(operation.errors);
    codes.sort_by_key(|(status, _)| *status);
    let mut by_status: Vec<(u16, Vec<&'static str>)> = Vec::new();
    for (status, code) in codes {
        match by_status.last_mut() {
            Some((last, known)) if *last == status => known.push(code),
            _ => by_status.push((status, vec![code])),
        }
    }
    by_status
}
