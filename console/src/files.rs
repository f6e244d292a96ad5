//! The files of the console: those in the program, or those of a folder during development.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use crate::content_type::content_type;
use cairn_http1::{RequestHead, ResponseHead, StatusCode};
use cairn_net::ResponseBody;

/// A file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Its path below `console/web`.
    pub(crate) path: Cow<'static, str>,
    /// Its `Content-Type`.
    pub(crate) content_type: &'static str,
    /// Its bytes.
    pub(crate) plain: Cow<'static, [u8]>,
    /// Its bytes, compressed with Brotli; `None`: they are not.
    pub(crate) brotli: Option<&'static [u8]>,
    /// Its bytes, compressed with gzip; `None`: they are not.
    pub(crate) gzip: Option<&'static [u8]>,
}

impl File {
    /// Returns the smallest form that an `Accept-Encoding` allows, with the name of its coding; `None`: only the plain one.
    fn smallest(&self, accepted: &str) -> Option<(&'static str, &'static [u8])> {
        let forms = [("br", self.brotli), ("gzip", self.gzip)];
        forms.into_iter().find_map(|(coding, body)| Some((coding, body.filter(|_| takes(coding, accepted))?)))
    }
}

/// All files of the console.
#[derive(Debug)]
pub struct ConsoleFiles {
    files: Cow<'static, [File]>,
    /// Names the folder of the files in URLs.
    version: Cow<'static, str>,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The folder of the files in URLs; the version follows.
const ASSETS: &str = "/assets/";
const PAGE: &str = "index.html";
/// Replaced in the page.
const VERSION_PLACEHOLDER: &str = "{version}";

/// The file of a path, by how long browsers may keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'f> {
    /// The page, which is asked for again each time.
    Page(&'f File),
    /// A file that never changes.
    Asset(&'f File),
}

impl ConsoleFiles {
    /// Returns the files that are part of the program.
    #[must_use]
    pub const fn embedded() -> Self {
        Self { files: Cow::Borrowed(FILES), version: Cow::Borrowed(VERSION) }
    }

    /// Reads the files of a folder, for development. Blocks.
    ///
    /// # Errors
    /// Those of the file system, and a file whose type is not known.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        read_folder(folder, "", &mut files)?;
        // Browsers must not keep files of the last start.
        let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let version = format!("dev{}", started.as_millis());
        for file in files.iter_mut().filter(|file| file.path == PAGE) {
            let text = String::from_utf8_lossy(&file.plain).replace(VERSION_PLACEHOLDER, &version);
            file.plain = Cow::Owned(text.into_bytes());
        }
        Ok(Self { files: Cow::Owned(files), version: Cow::Owned(version) })
    }

    /// Finds the file of a path. Files of other versions of the program do not exist.
    pub(crate) fn find(&self, path: &str) -> Option<Found<'_>> {
        let by_name = |name: &str| self.files.iter().find(|file| file.path == name);
        if path == "/" {
            return by_name(PAGE).map(Found::Page);
        }
        let name = path.strip_prefix(ASSETS)?.strip_prefix(&*self.version)?.strip_prefix('/')?;
        by_name(name).filter(|file| file.path != PAGE).map(Found::Asset)
    }

    /// Returns the response with a file. `policy` is the Content-Security-Policy of the page.
    pub(crate) fn respond(
        &self,
        found: Found<'_>,
        head: &RequestHead,
        policy: &str,
    ) -> (ResponseHead, ResponseBody) {
        let (file, cache) = match found {
            Found::Page(file) => (file, "no-cache"),
            Found::Asset(file) => (file, "public, max-age=31536000, immutable"),
        };
        let is_page = matches!(found, Found::Page(_));
        let etag = format!("\"{}\"", self.version);
        let is_current = is_page && head.header("if-none-match") == Some(etag.as_bytes());
        let mut response =
            ResponseHead::new(if is_current { StatusCode::NOT_MODIFIED } else { StatusCode::OK });
        response.header("cache-control", cache);
        response.header("vary", "Accept-Encoding");
        if is_page {
            response.header("etag", &etag);
            response.header("content-security-policy", policy);
            response.header("cross-origin-opener-policy", "same-origin");
            response
                .header("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()");
        }
        if is_current {
            return (response, ResponseBody::Omitted { length: None });
        }
        response.header("content-type", file.content_type);
        let accepted = head.header_str("accept-encoding").unwrap_or_default();
        let body = match file.smallest(accepted) {
            Some((coding, body)) => {
                response.header("content-encoding", coding);
                body
            }
            None => &file.plain,
        };
        (response, ResponseBody::Full(body.to_vec()))
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), files)?;
            continue;
        }
        let unknown = || io::Error::other(format!("{name}: the type of such files is not known"));
        let content_type = content_type(&name).ok_or_else(unknown)?;
        let plain = Cow::Owned(std::fs::read(entry.path())?);
        files.push(File { path: Cow::Owned(name), content_type, plain, brotli: None, gzip: None });
    }
    Ok(())
}

/// Returns whether an `Accept-Encoding` allows a coding (RFC 9110, section 12.5.3).
fn takes(coding: &str, accepted: &str) -> bool {
    accepted.split(',').any(|member| {
        let mut parts = member.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_refused = parts
            .any(|part| matches!(part.replace(' ', "").as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        (name.eq_ignore_ascii_case(coding) || name == "*") && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest size of all files together, compressed, in bytes: the console must be quick on a slow line.
    const BYTES_MAX: usize = 200_000;
    /// Largest size of the files that every first view loads, with Brotli, in bytes. Answers of the server and headers add
    /// 6 to 7 kB in the overview.
    const FIRST_VIEW_BYTES_MAX: usize = 33_200;

    #[test]
    fn files_are_found_in_the_folder_of_this_version_only() {
        let files = ConsoleFiles::embedded();
        let find = |path: &str| files.find(path);
        assert!(matches!(find("/"), Some(Found::Page(_))));
        assert!(matches!(find(&format!("/assets/{VERSION}/main.js")), Some(Found::Asset(_))));
        for path in
            ["/index.html", "/assets/main.js", "/assets/0123456789abcdef/main.js", "/assets/", "//", ""]
        {
            assert!(find(path).is_none(), "{path}");
        }
        assert!(find(&format!("/assets/{VERSION}/index.html")).is_none());
        assert!(find(&format!("/assets/{VERSION}/../main.js")).is_none());
    }

    #[test]
    fn the_page_refers_to_files_that_exist() {
        let files = ConsoleFiles::embedded();
        let Some(Found::Page(page)) = files.find("/") else { panic!("no page") };
        let text = std::str::from_utf8(&page.plain).expect("UTF-8");
        let mut count = 0;
        for path in text.split('"').filter(|text| text.starts_with("/assets/")) {
            assert!(files.find(path).is_some(), "{path}");
            count += 1;
        }
        assert!(count >= 2, "a script and a style sheet");
    }

    #[test]
    fn all_files_together_are_small() {
        let total: usize = FILES.iter().filter_map(|file| file.gzip).map(<[u8]>::len).sum();
        assert!(total < BYTES_MAX, "{total} bytes");
    }

    #[test]
    fn the_files_of_a_first_view_are_small() {
        let files = ["index.html", "icon.svg", "style.css", "main.js"];
        let found = FILES.iter().filter(|file| files.contains(&&*file.path));
        let sizes: Vec<_> = found.filter_map(|file| file.brotli).map(<[u8]>::len).collect();
        assert_eq!(sizes.len(), files.len());
        assert!(sizes.iter().sum::<usize>() < FIRST_VIEW_BYTES_MAX, "{sizes:?}");
    }

    #[test]
    fn a_folder_has_the_same_files_and_the_modules_of_the_first_view() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/web");
        let read = ConsoleFiles::read(Path::new(folder)).expect("readable");
        assert!(FILES.iter().all(|file| read.files.iter().any(|other| other.path == file.path)));
        let has = |files: &[File]| files.iter().any(|file| file.path == "views/overview.js");
        assert!(has(&read.files) && !has(FILES), "the program has the first view");
        let main = format!("/assets/{}/main.js", read.version);
        assert!(read.find(&main).is_some() && ConsoleFiles::embedded().find(&main).is_none());
        assert!(ConsoleFiles::read(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn the_smallest_form_that_a_client_takes_is_sent() {
        let program = FILES.iter().find(|file| file.path == "main.js").expect("the program");
        for (accepted, expected) in [
            ("gzip", Some("gzip")),
            ("deflate, gzip;q=0.5, BR", Some("br")),
            ("*", Some("br")),
            ("br;q=0, gzip", Some("gzip")),
            ("gzip;q=0", None),
            ("gzip; q=0.0", None),
            ("", None),
        ] {
            assert_eq!(program.smallest(accepted).map(|(coding, _)| coding), expected, "{accepted}");
        }
        assert!(program.brotli.expect("compressed").len() < program.gzip.expect("compressed").len());
    }
}
