//! The table of routes. A route exists when it stands here, and nowhere else.

use http::Method;

use crate::error::AdminError;

/// Who may call a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everybody (specification, "Unauthenticated").
    Public,
    /// Whoever has a management credential.
    Authenticated,
    /// Whoever has the scrape token, and nobody else (specification, "Metrics").
    Scraper,
}

/// What answers a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handler {
    Health,
    Ready,
    SystemInfo,
    Session,
    AuditEvents,
    Metrics,
    SystemMetrics,
    VerifyObject,
    VerifyBucket,
    VerifyProgress,
    StorageStatus,
    StorageUsage,
    StorageInspect,
    StorageRepair,
}

/// One route.
#[derive(Debug)]
pub(crate) struct Route {
    /// GET stands for HEAD too.
    pub(crate) method: Method,
    /// A segment `{bucket}` stands for one segment of the path, a `{key}` for all the rest.
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) handler: Handler,
}

const fn get(path: &'static str, access: Access, handler: Handler) -> Route {
    Route { method: Method::GET, path, access, handler }
}

const fn post(path: &'static str, access: Access, handler: Handler) -> Route {
    Route { method: Method::POST, path, access, handler }
}

/// Every route of the management plane.
pub(crate) static ROUTES: &[Route] = &[
    get("/health", Access::Public, Handler::Health),
    get("/ready", Access::Public, Handler::Ready),
    get("/metrics", Access::Scraper, Handler::Metrics),
    get("/api/v1/system/info", Access::Authenticated, Handler::SystemInfo),
    get("/api/v1/system/metrics", Access::Authenticated, Handler::SystemMetrics),
    get("/api/v1/auth/session", Access::Authenticated, Handler::Session),
    get("/api/v1/audit/events", Access::Authenticated, Handler::AuditEvents),
    get("/api/v1/verify/progress", Access::Authenticated, Handler::VerifyProgress),
    post("/api/v1/verify/objects/{bucket}/{key}", Access::Authenticated, Handler::VerifyObject),
    post("/api/v1/verify/buckets/{bucket}", Access::Authenticated, Handler::VerifyBucket),
    get("/api/v1/storage/status", Access::Authenticated, Handler::StorageStatus),
    get("/api/v1/storage/usage", Access::Authenticated, Handler::StorageUsage),
    get("/api/v1/storage/inspect", Access::Authenticated, Handler::StorageInspect),
    post("/api/v1/storage/repair", Access::Authenticated, Handler::StorageRepair),
];

/// What the variable segments of a path stand for, as sent: percent-encoded.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Segments<'p> {
    pub(crate) bucket: &'p str,
    pub(crate) key: &'p str,
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

/// Holds a path against a pattern. No variable segment is empty.
fn fit<'p>(pattern: &str, path: &'p str) -> Option<Segments<'p>> {
    let mut segments = Segments::default();
    let (mut patterns, mut rest) = (pattern.split('/').peekable(), Some(path));
    while let Some(wanted) = patterns.next() {
        let left = rest?;
        if wanted == "{key}" && patterns.peek().is_none() {
            segments.key = left;
            return (!left.is_empty()).then_some(segments);
        }
        let (segment, behind) =
            left.split_once('/').map_or((left, None), |(segment, behind)| (segment, Some(behind)));
        rest = behind;
        match wanted {
            "{bucket}" if !segment.is_empty() => segments.bucket = segment,
            _ if wanted == segment => {}
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
            let same = |other: &&Route| other.path == route.path && other.method == route.method;
            assert!(!ROUTES[..index].iter().any(|other| same(&other)), "{}", route.path);
            let is_health = matches!(route.path, "/health" | "/ready");
            assert_eq!(route.access == Access::Public, is_health, "{}", route.path);
            let is_scrape = route.path == "/metrics";
            assert_eq!(route.access == Access::Scraper, is_scrape, "{}", route.path);
            assert!(is_health || is_scrape || route.path.starts_with("/api/v1/"), "{}", route.path);
        }
    }

    #[test]
    fn a_key_is_all_the_rest_of_a_path_and_a_bucket_one_segment() {
        let segments = |pattern, path| fit(pattern, path).map(|found| (found.bucket, found.key));
        let object = "/v/{bucket}/{key}";
        assert_eq!(segments(object, "/v/b/k"), Some(("b", "k")));
        assert_eq!(segments(object, "/v/b/k/l//%2F/"), Some(("b", "k/l//%2F/")));
        assert_eq!(segments(object, "/v/b//"), Some(("b", "/")));
        assert_eq!(segments("/v/{bucket}", "/v/b"), Some(("b", "")));
        assert_eq!(segments("/v", "/v"), Some(("", "")));
        for (pattern, path) in [
            (object, "/v/b"),
            (object, "/v/b/"),
            (object, "/v//k"),
            (object, "/w/b/k"),
            ("/v/{bucket}", "/v/"),
            ("/v/{bucket}", "/v/b/"),
            ("/v", "/v/"),
            ("/v", "v"),
        ] {
            assert_eq!(segments(pattern, path), None, "{pattern} {path}");
        }
    }
}
