//! Tests of the table of routes.

mod limits;

use super::*;
use crate::handlers::openapi;
use crate::operation::Access;
use cairn_identity::Role;
use serde_json::{Map, Value};

fn operations() -> impl Iterator<Item = &'static Operation> {
    management_routes().map(|route| &route.operation)
}

#[test]
fn routes_are_unique_and_only_health_is_public() {
    for (index, operation) in operations().enumerate() {
        let Operation { name, path, .. } = operation;
        let is_same = |other: &Operation| other.path == *path && other.method == operation.method;
        assert!(!operations().take(index).any(is_same), "{path}");
        assert!(!operations().take(index).any(|other| other.name == *name), "{name}");
        let is_change = !matches!(operation.method, Method::GET | Method::POST);
        // The record of its beginning speaks for all requests of an import.
        let is_of_import = path.contains("/imported-");
        assert!(operation.is_recorded() || !is_change || is_of_import, "{path}");
        let is_health = matches!(*path, "/health" | "/ready");
        assert_eq!(operation.access == Access::Public, is_health, "{path}");
        let is_scrape = *path == "/metrics";
        assert_eq!(operation.access == Access::Scraper, is_scrape, "{path}");
        assert!(is_health || is_scrape || path.starts_with("/api/v1/"), "{path}");
    }
}

/// The end-to-end tests try every role on every route of a running server.
#[test]
fn system_admin_may_do_everything_and_auditor_changes_nothing() {
    for operation in operations().filter(|operation| matches!(operation.access, Access::Roles(_))) {
        assert!(operation.access.admits(Role::SystemAdmin), "{}", operation.name);
        // What changes nothing is not recorded, and what is recorded may disclose a secret.
        let may_change = operation.access.admits(Role::Auditor) && operation.is_recorded();
        assert!(!may_change, "{}", operation.name);
    }
}

#[test]
fn operations_that_are_open_to_members_are_on_the_console_and_have_a_caller() {
    let open: Vec<_> = Surface::Console.routes().filter(|route| route.operation.members.is_some()).collect();
    // A route is opened on purpose: docs/internals/sign-in.md lists them, and says why.
    assert_eq!(open.len(), 31);
    for route in open {
        assert!(matches!(route.operation.access, Access::Roles(_)), "{}", route.operation.name);
    }
    // Only the console has members.
    let elsewhere = operations().filter(|operation| !operation.path.starts_with("/api/v1/"));
    assert_eq!(elsewhere.filter(|operation| operation.members.is_some()).count(), 0);
}

/// A DELETE of the preview was answered with the methods of a rule, too.
#[test]
fn fixed_segments_take_precedence_over_variable_ones() {
    let allowed = |path| match find(Surface::Management, &Method::DELETE, path).route {
        Err(AdminError::MethodNotAllowed(allow)) => allow,
        _ => String::new(),
    };
    assert_eq!(allowed("/api/v1/buckets/b/lifecycle/preview"), "POST");
    assert_eq!(allowed("/api/v1/buckets/b/lifecycle/other"), "PUT");
}

/// An expiry of null was refused where the keys of a credential are given, and accepted elsewhere.
#[test]
fn optional_members_of_requests_may_be_null() {
    let document = openapi::describe(described());
    let schemas = &document["components"]["schemas"];
    let named = |schema: &Value| {
        let name = schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")?;
        Some((name.to_owned(), &schemas[name]))
    };
    fn refers(value: &Value) -> Vec<&Value> {
        match value {
            Value::Object(members) if members.contains_key("$ref") => vec![value],
            Value::Object(members) => members.values().flat_map(refers).collect(),
            Value::Array(items) => items.iter().flat_map(refers).collect(),
            _ => Vec::new(),
        }
    }
    let mut waiting = Vec::new();
    for (method, operation) in document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(_, path)| path.as_object().into_iter().flatten())
    {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        // In a change, null removes a value, and some members cannot be without one.
        let members = if method == "patch" { named(body).map(|(_, schema)| schema) } else { Some(body) };
        waiting.extend(members.into_iter().flat_map(refers).filter_map(named));
    }
    let mut seen = std::collections::BTreeMap::new();
    while let Some((name, schema)) = waiting.pop() {
        if seen.insert(name, schema).is_none() {
            waiting.extend(refers(schema).into_iter().filter_map(named));
        }
    }
    assert!(seen.len() > 40 && seen.contains_key("GivenCredential"), "{:?}", seen.keys());
    let is_null = |schema: &Value| {
        let types = &schema["type"];
        types == "null" || types.as_array().is_some_and(|types| types.iter().any(|name| name == "null"))
    };
    for (name, schema) in seen {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let members = schema["properties"].as_object().into_iter().flatten();
        for (member, schema) in
            members.filter(|(member, _)| !required.contains(&Value::from(member.as_str())))
        {
            let choices = schema["anyOf"].as_array().into_iter().flatten();
            assert!(is_null(schema) || choices.into_iter().any(is_null), "{name}.{member}: {schema}");
        }
    }
}

#[test]
fn openapi_document_has_every_route_and_resolves_every_reference() {
    let document = openapi::describe(described());
    let paths: usize = document["paths"]
        .as_object()
        .map_or(0, |paths| paths.values().filter_map(Value::as_object).map(Map::len).sum());
    assert_eq!(paths, described().count());
    assert!(
        described().all(|(_, operation)| !operation.summary.is_empty() && !operation.successes.is_empty())
    );
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "schema {name} has no description");
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "schema {name} is unused");
    }
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(schemas.contains_key(name), "schema {name} is missing");
    }
}
