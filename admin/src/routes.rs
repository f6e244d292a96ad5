//! The table of routes: method, path, permission, name, parameters, bodies, answers, handler. A route exists only if it is
//! a row of it. There is one file for each tag of the OpenAPI document, and
//! one for the console.

use std::future::Future;
use std::pin::Pin;

use http::Method;

use crate::call::Call;
use crate::error::AdminError;
use crate::operation::Operation;
use crate::reply::Reply;
use crate::request::path::{Segments, match_path};
#[cfg(test)]
use crate::request::query::Parameters;

mod accounts;
mod audit;
mod buckets;
mod console;
mod events;
mod imports;
mod integrity;
mod lifecycle;
mod objects;
mod policies;
mod row;
mod sharing;
mod storage;
mod system;
mod tokens;
mod visitors;
mod webhooks;

/// Answers the requests of a route.
pub(crate) type Handler =
    for<'a, 'b> fn(Call<'a, 'b>) -> Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + 'a>>;

/// One route.
pub(crate) struct Route {
    pub(crate) operation: Operation,
    pub(crate) handler: Handler,
}

/// The routes of the management plane, with their tags in the OpenAPI document.
static TAGS: [(&str, &[Route]); 14] = [
    ("system", system::ROUTES),
    ("buckets", buckets::ROUTES),
    ("lifecycle", lifecycle::ROUTES),
    ("objects", objects::ROUTES),
    ("imports", imports::ROUTES),
    ("sharing", sharing::ROUTES),
    ("accounts", accounts::ROUTES),
    ("policies", policies::ROUTES),
    ("tokens", tokens::ROUTES),
    ("audit", audit::ROUTES),
    ("events", events::ROUTES),
    ("webhooks", webhooks::ROUTES),
    ("integrity", integrity::ROUTES),
    ("storage", storage::ROUTES),
];

/// All routes of the management plane.
fn management_routes() -> impl Iterator<Item = &'static Route> {
    TAGS.iter().flat_map(|(_, routes)| *routes)
}

/// The operations of the OpenAPI document, with their tags.
fn described() -> impl Iterator<Item = (&'static str, &'static Operation)> {
    let own = TAGS.iter().flat_map(|(tag, routes)| routes.iter().map(|route| (*tag, &route.operation)));
    own.chain(visitors::OPERATIONS.iter().map(|operation| ("visitors", operation)))
}

/// Parses a query as a request of an operation would be.
#[cfg(test)]
pub(crate) fn query_of(operation: &str, query: &str) -> Result<Parameters, AdminError> {
    let declared = described().find(|(_, described)| described.name == operation);
    let declared = declared.and_then(|(_, operation)| operation.query).expect("an operation with a query");
    Parameters::parse(Some(query), declared)
}

/// The operation that is several reads at once. It cannot contain itself.
pub(crate) const READ_BATCH: &str = "read_batch";

/// The listener that a route belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Surface {
    /// All of the management plane.
    Management,
    /// Those below `/api/v1`, and those of the console alone.
    Console,
}

impl Surface {
    fn routes(self) -> impl Iterator<Item = &'static Route> {
        let is_console = self == Self::Console;
        let shared = management_routes()
            .filter(move |route| !is_console || route.operation.path.starts_with("/api/v1/"));
        shared.chain(console::ROUTES.iter().filter(move |_| is_console))
    }
}

/// Result of a lookup.
pub(crate) struct Match<'p> {
    /// The path pattern, even if its routes do not have the method; empty when no pattern matches.
    pub(crate) pattern: &'static str,
    pub(crate) route: Result<(&'static Route, Segments<'p>), AdminError>,
}

/// Finds the route of a request. `path` is as sent.
pub(crate) fn find<'p>(surface: Surface, method: &Method, path: &'p str) -> Match<'p> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut pattern = "";
    let mut allow = Vec::new();
    let matching =
        || surface.routes().filter_map(|route| Some((route, match_path(route.operation.path, path)?)));
    // Fixed segments take precedence: `preview` is not the id of a rule.
    let fewest = matching().map(|(_, segments)| segments.iter().count()).min();
    for (route, segments) in matching().filter(|(_, segments)| Some(segments.iter().count()) == fewest) {
        pattern = route.operation.path;
        if route.operation.method == *method {
            return Match { pattern, route: Ok((route, segments)) };
        }
        allow.push(route.operation.method.as_str());
        if route.operation.method == Method::GET {
            allow.push(Method::HEAD.as_str());
        }
    }
    let error =
        if allow.is_empty() { AdminError::NotFound } else { AdminError::MethodNotAllowed(allow.join(", ")) };
    Match { pattern, route: Err(error) }
}

#[cfg(test)]
mod tests;
