//! Places of objects on the command line: `bucket`, `bucket/key`, or a bucket and a pattern of keys.

use std::str::FromStr;

use cairn_api::ObjectEntry;
use cairn_http1::{encode_path, encode_strict};
use cairn_model::Glob;

use crate::client::Client;
use crate::client::pages::{OBJECTS, Pages};
use crate::commands::resources::BUCKETS;
use crate::failure::{Failure, Outcome};
use crate::moment::Moment;

/// A bucket, and a key, a prefix or a pattern in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) bucket: String,
    /// As written, with the characters of patterns.
    pub(crate) key: String,
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (bucket, key) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err("expected <bucket> or <bucket>/<key>, without a leading slash");
        }
        Glob::parse(key)?;
        Ok(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

/// The selection that a place makes.
pub(super) enum Selection {
    /// The object with this key.
    One(String),
    /// The objects whose keys begin with the prefix and match the pattern, if there is one.
    Many { prefix: String, pattern: Option<Glob> },
}

impl Place {
    /// Returns the pattern. The key was checked when the place was parsed.
    fn glob(&self) -> Result<Glob, Failure> {
        Glob::parse(&self.key).map_err(|error| Failure::WrongUsage(error.to_owned()))
    }

    /// Returns the key, which must not be a pattern or a prefix.
    pub(crate) fn one(&self) -> Result<String, Failure> {
        if self.key.is_empty() {
            let text = format!("{} is a bucket; write <bucket>/<key>", self.bucket);
            return Err(Failure::WrongUsage(text));
        }
        match self.selection(false)? {
            Selection::One(key) => Ok(key),
            Selection::Many { .. } => Err(Failure::WrongUsage(format!(
                "{}/{} is a pattern; this command takes one object (a backslash before * ? [ makes them literal)",
                self.bucket, self.key
            ))),
        }
    }

    /// Returns what the place selects. If `is_recursive`, a key without pattern is a prefix.
    pub(super) fn selection(&self, is_recursive: bool) -> Result<Selection, Failure> {
        let glob = self.glob()?;
        match glob.literal() {
            None => Ok(Selection::Many { prefix: glob.prefix(), pattern: Some(glob) }),
            Some(prefix) if is_recursive => Ok(Selection::Many { prefix, pattern: None }),
            Some(key) if key.is_empty() => Err(Failure::WrongUsage(format!(
                "{} is a bucket; write <bucket>/<key>, a pattern such as '{0}/*.jpg', or use --recursive",
                self.bucket
            ))),
            Some(key) => Ok(Selection::One(key)),
        }
    }

    /// Returns the key as a destination: without patterns.
    pub(super) fn destination(&self) -> Result<String, Failure> {
        self.glob()?.literal().ok_or_else(|| {
            Failure::WrongUsage(format!("the destination {}/{} must not be a pattern", self.bucket, self.key))
        })
    }
}

/// Returns a route of an object.
pub(crate) fn route(bucket: &str, route: &str, key: &str) -> String {
    format!("{}/{route}/{}", BUCKETS.path_of(bucket), encode_path(key))
}

/// Returns a route of an object, with the version if there is one.
pub(super) fn version_route(bucket: &str, name: &str, key: &str, version: Option<&str>) -> String {
    let version =
        version.map_or_else(String::new, |version| format!("?version_id={}", encode_strict(version)));
    route(bucket, name, key) + &version
}

/// Returns the route of an object as it was at a moment, or of a version.
pub(super) fn route_at(
    bucket: &str,
    name: &str,
    key: &str,
    version: Option<&str>,
    at: Option<&Moment>,
) -> Result<String, Failure> {
    match (version, at) {
        (Some(_), Some(_)) => {
            Err(Failure::WrongUsage("--at and --version-id cannot be given together".to_owned()))
        }
        (version, None) => Ok(version_route(bucket, name, key, version)),
        (None, Some(at)) => Ok(format!("{}?at={}", route(bucket, name, key), encode_strict(&at.0))),
    }
}

/// Passes the matching objects of each page of a list to `work`.
pub(super) fn for_each_page(
    client: &Client,
    bucket: &str,
    prefix: &str,
    pattern: Option<&Glob>,
    mut work: impl FnMut(Vec<ObjectEntry>) -> Outcome,
) -> Outcome {
    let mut pages = Pages::of_bucket(client, OBJECTS, bucket, prefix, None);
    while let Some(mut found) = pages.next_entries::<ObjectEntry>()? {
        found.retain(|one| pattern.is_none_or(|pattern| pattern.matches(&one.key)));
        work(found)?;
    }
    Ok(())
}

/// Returns the number of the matching objects and their bytes.
pub(super) fn count(
    client: &Client,
    bucket: &str,
    prefix: &str,
    pattern: Option<&Glob>,
) -> Result<(u64, u64), Failure> {
    let (mut objects, mut bytes) = (0, 0_u64);
    for_each_page(client, bucket, prefix, pattern, |found| {
        objects += found.len() as u64;
        bytes = found.iter().fold(bytes, |sum, one| sum.saturating_add(one.size));
        Ok(())
    })?;
    Ok((objects, bytes))
}

/// Returns the part of a key after the last slash of a prefix: the path below a folder.
pub(super) fn below<'k>(prefix: &str, key: &'k str) -> &'k str {
    let folder = prefix.rfind('/').map_or(0, |slash| slash + 1);
    key.get(folder..).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_and_a_key_or_pattern() {
        let place = |text: &str| text.parse::<Place>();
        assert_eq!(place("b").expect("valid").key, "");
        assert_eq!(place("b/a/c").expect("valid"), Place { bucket: "b".to_owned(), key: "a/c".to_owned() });
        assert!(place("").is_err() && place("/a").is_err() && place("b/[a").is_err());
        let one = |text: &str| place(text).expect("valid").one();
        assert_eq!(one(r"b/a\*"), Ok("a*".to_owned()));
        assert!(one("b").is_err() && one("b/a*").is_err());
        assert!(matches!(
            place("b").expect("valid").selection(true),
            Ok(Selection::Many { prefix, pattern: None }) if prefix.is_empty()
        ));
    }

    #[test]
    fn keys_keep_their_path_below_the_folder_of_a_prefix() {
        assert_eq!(below("2026/a", "2026/abc"), "abc");
        assert_eq!(below("2026/", "2026/11/x"), "11/x");
        assert_eq!(below("", "a/b"), "a/b");
    }
}
