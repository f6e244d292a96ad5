//! The API's description (OpenAPI 3.1), made from the table of routes.
//!
//! Paths, methods, operation names and who may call come from [`crate::routes`]; what a route takes and answers from
//! [`operations`]; the forms of bodies from `schemas.json`. A test holds the three together, and the end-to-end tests
//! hold a running server against the whole.

mod operations;

use std::sync::OnceLock;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::routes::{Access, ROUTES, Route, variables};
use operations::{Content, Description, description};

/// Forms of bodies and parameters (JSON Schema 2020-12), by name.
const SCHEMAS: &str = include_str!("schemas.json");

const INTRODUCTION: &str = "The management plane of a Cairn server. Path segments are percent-decoded once; a key takes the rest of the path, \
     slashes included. Unknown fields and parameters are refused. Every answer carries x-request-id; one that is sent is used \
     again.";

/// `GET /api/v1/openapi.json`.
pub(crate) async fn document(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    static DOCUMENT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    call.no_parameters()?;
    let text = DOCUMENT.get_or_init(|| serde_json::to_vec(&describe()?).ok());
    let text = text.clone().ok_or(AdminError::Internal)?;
    Ok(Reply::bytes(StatusCode::OK, "application/json", text))
}

/// The whole document; `None` when a table has a gap, which a test excludes.
fn describe() -> Option<Value> {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let operation = describe_route(route, description(route.operation)?);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path.as_object_mut()?.insert(route.method.as_str().to_ascii_lowercase(), operation);
    }
    let schemas: Value = serde_json::from_str(SCHEMAS).ok()?;
    Some(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cairn management API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "management_token": {"type": "http", "scheme": "bearer", "description": "The system token, or a management token."},
                "root_credential": {"type": "http", "scheme": "basic", "description": "The root access key and secret key."},
                "scrape_token": {"type": "http", "scheme": "bearer", "description": "The token of the metrics."},
            },
        },
    }))
}

fn describe_route(route: &Route, description: &Description) -> Value {
    let mut operation = json!({
        "operationId": route.operation,
        "summary": description.summary,
        "tags": [description.tag],
        "security": security(route.access),
        "responses": responses(route, description),
    });
    if let Access::Roles(roles) = route.access {
        let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
        operation["x-roles"] = names.into();
    }
    let parameters: Vec<Value> = variables(route.path)
        .map(|name| parameter("path", name, operations::path_schema(name), true))
        .chain(
            description
                .query
                .iter()
                .map(|asked| parameter("query", asked.name, asked.schema, asked.is_required)),
        )
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(request) = description.request {
        operation["requestBody"] =
            json!({"required": request.is_required, "content": content(request.content)});
    }
    operation
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn parameter(place: &str, name: &str, schema: &str, is_required: bool) -> Value {
    json!({"name": name, "in": place, "required": is_required, "schema": reference(schema)})
}

fn security(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::Scraper => json!([{"scrape_token": []}]),
        Access::Roles(_) => json!([{"management_token": []}, {"root_credential": []}]),
    }
}

fn content(content: Content) -> Value {
    match content {
        Content::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        Content::Bytes => json!({"*/*": {"schema": reference("Bytes")}}),
        Content::Text => json!({"text/plain": {"schema": reference("Text")}}),
    }
}

fn responses(route: &Route, description: &Description) -> Value {
    let mut responses = Map::new();
    for answer in description.answers {
        let mut response = json!({"description": answer.meaning});
        if let Some(body) = answer.content {
            response["content"] = content(body);
        }
        responses.insert(answer.status.to_string(), response);
    }
    for (status, codes) in refusals(route, description) {
        let description = codes.join(", ");
        let known = json!({"description": description, "content": content(Content::Json("Error"))});
        responses.entry(status.to_string()).or_insert(known);
    }
    Value::Object(responses)
}

/// The refusals of a route by status: those that every route has, those of its kind, and its own.
fn refusals(route: &Route, description: &Description) -> Vec<(u16, Vec<&'static str>)> {
    let mut codes: Vec<(u16, &'static str)> = Vec::new();
    if route.access != Access::Public {
        codes.extend([(400, "INVALID_REQUEST"), (401, "UNAUTHENTICATED"), (429, "TOO_MANY_REQUESTS")]);
        codes.extend([(500, "INTERNAL_ERROR"), (503, "NOT_READY")]);
    }
    if matches!(route.access, Access::Roles(_)) {
        codes.push((403, "FORBIDDEN"));
    }
    if description.request.is_some() {
        codes.extend([(408, "INVALID_REQUEST"), (411, "INVALID_REQUEST"), (413, "PAYLOAD_TOO_LARGE")]);
    }
    if route.is_recorded {
        codes.push((507, "STORAGE_FULL"));
    }
    codes.extend_from_slice(description.refusals);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reference of the document leads somewhere, and every schema is referred to.
    #[test]
    fn the_document_has_every_route_and_no_loose_end() {
        let document = describe().expect("every route has a description");
        let operations: usize = document["paths"]
            .as_object()
            .map_or(0, |paths| paths.values().filter_map(Value::as_object).map(Map::len).sum());
        assert_eq!((operations, operations::DESCRIPTIONS.len()), (ROUTES.len(), ROUTES.len()));
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for name in schemas.keys() {
            assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "nobody refers to {name}");
        }
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "there is no schema {name}");
        }
    }
}
