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
}

/// What answers a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handler {
    Health,
    Ready,
    SystemInfo,
    Session,
}

/// One route.
#[derive(Debug)]
pub(crate) struct Route {
    /// GET stands for HEAD too.
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) handler: Handler,
}

const fn get(path: &'static str, access: Access, handler: Handler) -> Route {
    Route { method: Method::GET, path, access, handler }
}

/// Every route of the management plane.
pub(crate) static ROUTES: &[Route] = &[
    get("/health", Access::Public, Handler::Health),
    get("/ready", Access::Public, Handler::Ready),
    get("/api/v1/system/info", Access::Authenticated, Handler::SystemInfo),
    get("/api/v1/auth/session", Access::Authenticated, Handler::Session),
];

/// What a method and path lead to.
pub(crate) struct Match {
    /// The pattern, also of a route that does not take the method; empty when there is none.
    pub(crate) pattern: &'static str,
    pub(crate) route: Result<&'static Route, AdminError>,
}

/// Finds the route of a request. `path` is as sent: no route has a character that would need encoding.
pub(crate) fn find(method: &Method, path: &str) -> Match {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut pattern = "";
    let mut allow = Vec::new();
    for route in ROUTES.iter().filter(|route| route.path == path) {
        pattern = route.path;
        if route.method == *method {
            return Match { pattern, route: Ok(route) };
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
            assert!(is_health || route.path.starts_with("/api/v1/"), "{}", route.path);
        }
    }
}
