//! The table of routes. A route exists when it stands here, and nowhere else: method, path, who may call it, the
//! operation's name, what answers it.

use std::future::Future;
use std::pin::Pin;

use cairn_identity::Role;
use http::Method;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::{
    accounts, audit, buckets, credentials, metrics, objects, openapi, policies, storage, system, tokens,
    verify,
};

/// Who may call a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everybody (specification, "Unauthenticated").
    Public,
    /// Whoever has the scrape token, and nobody else (specification, "Metrics").
    Scraper,
    /// Callers with one of these roles.
    Roles(&'static [Role]),
}

/// Every role.
const ALL: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin, Role::Auditor]);
/// Who looks after what is stored: changes of it, and looks into objects.
const STORAGE: Access = Access::Roles(&[Role::SystemAdmin, Role::StorageAdmin]);
/// Who decides whom the service knows.
const SYSTEM: Access = Access::Roles(&[Role::SystemAdmin]);
/// Who may see whom the service knows and what was done.
const OVERSIGHT: Access = Access::Roles(&[Role::SystemAdmin, Role::Auditor]);

impl Access {
    /// Whether callers of this role are let in.
    pub(crate) fn admits(self, role: Role) -> bool {
        matches!(self, Self::Roles(roles) if roles.contains(&role))
    }
}

/// What answers a route.
pub(crate) type Handler =
    for<'a, 'b> fn(Call<'a, 'b>) -> Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + 'a>>;

/// One route.
pub(crate) struct Route {
    /// GET stands for HEAD too.
    pub(crate) method: Method,
    /// A segment in braces stands for one segment of the path, a last `{key}` for all the rest.
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    /// The operation's name in the audit trail and in the API's description.
    pub(crate) operation: &'static str,
    /// Whether carrying it out leaves a record in the audit trail: every change does.
    pub(crate) is_recorded: bool,
    pub(crate) handler: Handler,
}

/// Makes a handler of an async function.
macro_rules! handler {
    ($function:path) => {
        |call| Box::pin($function(call))
    };
}

const fn get(path: &'static str, access: Access, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::GET, path, access, operation, is_recorded: false, handler }
}

const fn post(path: &'static str, access: Access, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::POST, path, access, operation, is_recorded: true, handler }
}

const fn put(path: &'static str, access: Access, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::PUT, path, access, operation, is_recorded: true, handler }
}

const fn delete(path: &'static str, access: Access, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::DELETE, path, access, operation, is_recorded: true, handler }
}

impl Route {
    /// For a POST that changes nothing.
    const fn unrecorded(mut self) -> Self {
        self.is_recorded = false;
        self
    }
}

/// Every route of the management plane.
pub(crate) static ROUTES: &[Route] = &[
    get("/health", Access::Public, "get_health", handler!(system::health)),
    get("/ready", Access::Public, "get_readiness", handler!(system::ready)),
    get("/metrics", Access::Scraper, "scrape_metrics", handler!(metrics::text)),
    get("/api/v1/openapi.json", ALL, "get_openapi", handler!(openapi::document)),
    get("/api/v1/system/info", ALL, "get_system_info", handler!(system::system_info)),
    get("/api/v1/system/metrics", ALL, "get_metrics", handler!(metrics::json)),
    get("/api/v1/auth/session", ALL, "get_session", handler!(system::session)),
    get("/api/v1/buckets", ALL, "list_buckets", handler!(buckets::list)),
    post("/api/v1/buckets", STORAGE, "create_bucket", handler!(buckets::create)),
    get("/api/v1/buckets/{bucket}", ALL, "get_bucket", handler!(buckets::get)),
    delete("/api/v1/buckets/{bucket}", STORAGE, "delete_bucket", handler!(buckets::delete)),
    get("/api/v1/buckets/{bucket}/versioning", ALL, "get_versioning", handler!(buckets::versioning)),
    put("/api/v1/buckets/{bucket}/versioning", STORAGE, "set_versioning", handler!(buckets::set_versioning)),
    put("/api/v1/buckets/{bucket}/quota", STORAGE, "set_quota", handler!(buckets::set_quota)),
    get("/api/v1/buckets/{bucket}/objects", ALL, "list_objects", handler!(objects::list)),
    get("/api/v1/buckets/{bucket}/object/{key}", ALL, "get_object", handler!(objects::metadata)),
    put("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "upload_object", handler!(objects::put)),
    delete("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "delete_object", handler!(objects::delete)),
    get(
        "/api/v1/buckets/{bucket}/object-content/{key}",
        STORAGE,
        "download_object",
        handler!(objects::content),
    ),
    get(
        "/api/v1/buckets/{bucket}/object-preview/{key}",
        STORAGE,
        "preview_object",
        handler!(objects::preview),
    ),
    get(
        "/api/v1/buckets/{bucket}/object-versions",
        ALL,
        "list_object_versions",
        handler!(objects::list_versions),
    ),
    delete(
        "/api/v1/buckets/{bucket}/object-versions/{key}",
        STORAGE,
        "delete_object_version",
        handler!(objects::delete_version),
    ),
    post("/api/v1/buckets/{bucket}/object-copy/{key}", STORAGE, "copy_object", handler!(objects::copy)),
    post("/api/v1/restore/{bucket}/{key}", STORAGE, "restore_object", handler!(objects::restore)),
    get("/api/v1/service-accounts", OVERSIGHT, "list_service_accounts", handler!(accounts::list)),
    post("/api/v1/service-accounts", SYSTEM, "create_service_account", handler!(accounts::create)),
    get("/api/v1/service-accounts/{id}", OVERSIGHT, "get_service_account", handler!(accounts::get)),
    delete("/api/v1/service-accounts/{id}", SYSTEM, "delete_service_account", handler!(accounts::delete)),
    put(
        "/api/v1/service-accounts/{id}/status",
        SYSTEM,
        "set_service_account_status",
        handler!(accounts::set_status),
    ),
    post(
        "/api/v1/service-accounts/{id}/credentials",
        SYSTEM,
        "create_credential",
        handler!(credentials::rotate),
    ),
    post(
        "/api/v1/service-accounts/{id}/temporary-credentials",
        SYSTEM,
        "create_temporary_credential",
        handler!(credentials::create_temporary),
    ),
    delete(
        "/api/v1/service-accounts/{id}/credentials/{credential_id}",
        SYSTEM,
        "delete_credential",
        handler!(credentials::delete),
    ),
    put(
        "/api/v1/service-accounts/{id}/credentials/{credential_id}/status",
        SYSTEM,
        "set_credential_status",
        handler!(credentials::set_status),
    ),
    get("/api/v1/policies", OVERSIGHT, "list_policies", handler!(policies::list)),
    post("/api/v1/policies", SYSTEM, "create_policy", handler!(policies::create)),
    get("/api/v1/policies/{policy_id}", OVERSIGHT, "get_policy", handler!(policies::get)),
    delete("/api/v1/policies/{policy_id}", SYSTEM, "delete_policy", handler!(policies::delete)),
    put(
        "/api/v1/policies/{policy_id}/bindings/{account_id}",
        SYSTEM,
        "attach_policy",
        handler!(policies::attach),
    ),
    delete(
        "/api/v1/policies/{policy_id}/bindings/{account_id}",
        SYSTEM,
        "detach_policy",
        handler!(policies::detach),
    ),
    get("/api/v1/management-tokens", SYSTEM, "list_management_tokens", handler!(tokens::list)),
    post("/api/v1/management-tokens", SYSTEM, "create_management_token", handler!(tokens::create)),
    delete("/api/v1/management-tokens/{id}", SYSTEM, "delete_management_token", handler!(tokens::delete)),
    get("/api/v1/audit/events", OVERSIGHT, "list_audit_events", handler!(audit::events)),
    get("/api/v1/verify/progress", ALL, "get_verification_progress", handler!(verify::progress)),
    post("/api/v1/verify/objects/{bucket}/{key}", STORAGE, "verify_object", handler!(verify::object))
        .unrecorded(),
    post("/api/v1/verify/buckets/{bucket}", STORAGE, "verify_bucket", handler!(verify::bucket)).unrecorded(),
    get("/api/v1/storage/status", ALL, "get_storage_status", handler!(storage::status)),
    get("/api/v1/storage/usage", ALL, "get_storage_usage", handler!(storage::usage)),
    get("/api/v1/storage/inspect", ALL, "inspect_storage", handler!(storage::inspect)),
    post("/api/v1/storage/repair", STORAGE, "repair_storage", handler!(storage::repair)),
];

/// Most variable segments of a path.
const SEGMENTS_MAX: usize = 2;

/// What the variable segments of a path stand for, as sent: percent-encoded.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Segments<'p> {
    named: [(&'static str, &'p str); SEGMENTS_MAX],
    count: usize,
}

impl<'p> Segments<'p> {
    /// The segment that stands for `{name}`.
    pub(crate) fn get(&self, name: &str) -> Option<&'p str> {
        self.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// All of them, in order of the path, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &'p str)> {
        self.named.into_iter().take(self.count)
    }

    fn push(&mut self, name: &'static str, value: &'p str) -> Option<()> {
        *self.named.get_mut(self.count)? = (name, value);
        self.count += 1;
        Some(())
    }
}

/// What a method and path lead to.
pub(crate) struct Match<'p> {
    /// The pattern, also of a route that does not take the method; empty when there is none.
    pub(crate) pattern: &'static str,
    pub(crate) route: Result<(&'static Route, Segments<'p>), AdminError>,
}

/// Finds the route of a request. `path` is as sent: no fixed segment has a character that would need encoding.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Match<'p> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut pattern = "";
    let mut allow = Vec::new();
    for (route, segments) in ROUTES.iter().filter_map(|route| Some((route, fit(route.path, path)?))) {
        pattern = route.path;
        if route.method == *method {
            return Match { pattern, route: Ok((route, segments)) };
        }
        allow.push(route.method.as_str());
        if route.method == Method::GET {
            allow.push(Method::HEAD.as_str());
        }
    }
    let refusal =
        if allow.is_empty() { AdminError::NotFound } else { AdminError::MethodNotAllowed(allow.join(", ")) };
    Match { pattern, route: Err(refusal) }
}

/// The name of a variable segment of a pattern.
fn variable(wanted: &'static str) -> Option<&'static str> {
    wanted.strip_prefix('{')?.strip_suffix('}')
}

/// The names of the variable segments of a pattern, in order.
pub(crate) fn variables(pattern: &'static str) -> impl Iterator<Item = &'static str> {
    pattern.split('/').filter_map(variable)
}

/// Holds a path against a pattern. No variable segment is empty.
fn fit<'p>(pattern: &'static str, path: &'p str) -> Option<Segments<'p>> {
    let mut segments = Segments::default();
    let (mut patterns, mut rest) = (pattern.split('/').peekable(), Some(path));
    while let Some(wanted) = patterns.next() {
        let left = rest?;
        if wanted == "{key}" && patterns.peek().is_none() {
            segments.push("key", left)?;
            return (!left.is_empty()).then_some(segments);
        }
        let (segment, behind) =
            left.split_once('/').map_or((left, None), |(segment, behind)| (segment, Some(behind)));
        rest = behind;
        match variable(wanted) {
            Some(name) if !segment.is_empty() => segments.push(name, segment)?,
            None if wanted == segment => {}
            _ => return None,
        }
    }
    rest.is_none().then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_route_stands_twice_and_only_health_is_public() {
        for (index, route) in ROUTES.iter().enumerate() {
            let before = &ROUTES[..index];
            let same = |other: &&Route| other.path == route.path && other.method == route.method;
            assert!(!before.iter().any(|other| same(&other)), "{}", route.path);
            assert!(!before.iter().any(|other| other.operation == route.operation), "{}", route.operation);
            let is_health = matches!(route.path, "/health" | "/ready");
            assert_eq!(route.access == Access::Public, is_health, "{}", route.path);
            let is_scrape = route.path == "/metrics";
            assert_eq!(route.access == Access::Scraper, is_scrape, "{}", route.path);
            assert!(is_health || is_scrape || route.path.starts_with("/api/v1/"), "{}", route.path);
        }
    }

    /// What the roles are for. The whole matrix is walked against a running server by the end-to-end tests.
    #[test]
    fn the_system_s_administrator_may_all_and_an_auditor_changes_nothing() {
        for route in ROUTES.iter().filter(|route| matches!(route.access, Access::Roles(_))) {
            assert!(route.access.admits(Role::SystemAdmin), "{}", route.operation);
            let may_change = route.access.admits(Role::Auditor) && route.method != Method::GET;
            assert!(!may_change, "{}", route.operation);
        }
    }

    #[test]
    fn a_key_is_all_the_rest_of_a_path_and_other_variables_one_segment() {
        let segments = |pattern, path| {
            fit(pattern, path).map(|found| found.iter().map(|(_, value)| value).collect::<Vec<_>>())
        };
        let object = "/v/{bucket}/{key}";
        assert_eq!(segments(object, "/v/b/k"), Some(vec!["b", "k"]));
        assert_eq!(segments(object, "/v/b/k/l//%2F/"), Some(vec!["b", "k/l//%2F/"]));
        assert_eq!(segments(object, "/v/b//"), Some(vec!["b", "/"]));
        assert_eq!(segments("/v/{bucket}", "/v/b"), Some(vec!["b"]));
        assert_eq!(segments("/v/{id}/w/{other_id}", "/v/1/w/2"), Some(vec!["1", "2"]));
        assert_eq!(segments("/v", "/v"), Some(vec![]));
        assert_eq!(fit(object, "/v/b/k").and_then(|found| found.get("key")), Some("k"));
        for (pattern, path) in [
            (object, "/v/b"),
            (object, "/v/b/"),
            (object, "/v//k"),
            (object, "/w/b/k"),
            ("/v/{bucket}", "/v/"),
            ("/v/{bucket}", "/v/b/"),
            ("/v/{id}/w/{other_id}", "/v/1/w/"),
            ("/v", "/v/"),
            ("/v", "v"),
        ] {
            assert_eq!(segments(pattern, path), None, "{pattern} {path}");
        }
    }
}
