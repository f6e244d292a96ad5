//! Media types of the files of the console. The build script uses them, too.

/// Returns the `Content-Type` of a file of the console, by the ending of its name.
pub(crate) fn content_type(path: &str) -> Option<&'static str> {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}
