//! Pages of lists of versions and of current objects.

use cairn_http1::{decode, parse_rfc3339_millis};

use super::settings::{Settings, parsed_lock, parsed_tags};
use crate::s3::xml::{self, Element};
use crate::terminal::plain;

/// A version or delete marker in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The id, or `null`. `None` in a list of current objects.
    pub(crate) version_id: Option<String>,
    pub(crate) is_marker: bool,
    /// Whether the source says that it is the current version of its key.
    pub(crate) is_latest: bool,
    /// Without quotes; empty for a delete marker.
    pub(crate) etag: String,
    pub(crate) size: u64,
    /// In milliseconds since the Unix epoch.
    pub(crate) modified: u64,
    /// Whether only a key that its client has can decrypt it, as far as the source lists that.
    pub(crate) has_client_key: bool,
    /// Tags and lock, if the source lists them.
    pub(crate) settings: Option<Settings>,
}

impl Entry {
    /// Returns the id under which the version is imported.
    pub(crate) fn id(&self) -> &str {
        self.version_id.as_deref().unwrap_or("null")
    }

    /// Returns whether the tag has a form that can be kept: that of an MD5, also of parts.
    pub(crate) fn has_usual_tag(&self) -> bool {
        is_md5(&self.etag) || self.parts().is_some()
    }

    /// Returns the number of parts that the tag names, if the object was uploaded in parts.
    pub(crate) fn parts(&self) -> Option<u32> {
        let (digest, parts) = self.etag.split_once('-')?;
        parts.parse().ok().filter(|parts| is_md5(digest) && (1..=10_000).contains(parts))
    }
}

fn is_md5(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The position of a page in a list: parameters of the request.
pub(crate) type Place = Vec<(&'static str, String)>;

/// A page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    /// The start of the next page; `None` after the last one.
    pub(crate) next: Option<Place>,
    /// Whether the source lists tags and locks.
    pub(crate) has_settings: bool,
}

/// Reads a page of a list of versions.
///
/// # Errors
/// The problem with the page.
pub(super) fn versions(document: &str) -> Result<Page, String> {
    let root = root_of(document, "ListVersionsResult")?;
    let is_encoded = root.text_of("EncodingType") == Some("url");
    let mut page = Page { entries: Vec::new(), next: None, has_settings: false };
    for child in root.children() {
        let is_marker = child.name() == "DeleteMarker";
        if is_marker || child.name() == "Version" {
            page.has_settings |= child.child("UserMetadata").is_some();
            page.entries.push(entry(child, is_marker, is_encoded)?);
        }
    }
    if root.text_of("IsTruncated") == Some("true") {
        let key = root.text_of("NextKeyMarker").filter(|key| !key.is_empty());
        let key = decoded(key.ok_or("a page of the list has no end and no next marker")?, is_encoded)?;
        let version = root.text_of("NextVersionIdMarker").filter(|version| !version.is_empty());
        let version = version.map(|version| ("version-id-marker", version.to_owned()));
        page.next = Some([("key-marker", key)].into_iter().chain(version).collect());
    }
    Ok(page)
}

/// Reads a page of a list of current objects.
///
/// # Errors
/// The problem with the page.
pub(super) fn objects(document: &str) -> Result<Page, String> {
    let root = root_of(document, "ListBucketResult")?;
    let is_encoded = root.text_of("EncodingType") == Some("url");
    let found = root.children().iter().filter(|child| child.name() == "Contents");
    let entries = found.map(|child| entry(child, false, is_encoded)).collect::<Result<Vec<_>, _>>()?;
    let next = match root.text_of("IsTruncated") {
        Some("true") => {
            let token = root.text_of("NextContinuationToken").filter(|token| !token.is_empty());
            let token = token.ok_or("a page of the list has no end and no next token")?;
            Some(vec![("continuation-token", token.to_owned())])
        }
        _ => None,
    };
    Ok(Page { entries, next, has_settings: false })
}

/// A page of a list of unfinished uploads, or of the parts of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartialPage<T> {
    pub(crate) entries: Vec<T>,
    /// The start of the next page; `None` after the last one.
    pub(crate) next: Option<Place>,
}

/// Reads a page of a list of unfinished uploads: their keys and ids.
///
/// # Errors
/// The problem with the page.
pub(super) fn uploads(document: &str) -> Result<PartialPage<(String, String)>, String> {
    let root = root_of(document, "ListMultipartUploadsResult")?;
    let is_encoded = root.text_of("EncodingType") == Some("url");
    let upload = |upload: &Element| {
        let key = decoded(upload.text_of("Key").ok_or("an upload of the list has no key")?, is_encoded)?;
        let id = upload.text_of("UploadId").ok_or("an upload of the list has no id")?;
        Ok::<_, String>((key, id.to_owned()))
    };
    let found = root.children().iter().filter(|child| child.name() == "Upload");
    let entries = found.map(upload).collect::<Result<Vec<_>, _>>()?;
    let mut next = None;
    if root.text_of("IsTruncated") == Some("true") {
        let key = root.text_of("NextKeyMarker").filter(|key| !key.is_empty());
        let key = decoded(key.ok_or("a page of the uploads has no end and no next marker")?, is_encoded)?;
        let id = root.text_of("NextUploadIdMarker").filter(|id| !id.is_empty());
        let id = id.map(|id| ("upload-id-marker", id.to_owned()));
        next = Some([("key-marker", key)].into_iter().chain(id).collect());
    }
    Ok(PartialPage { entries, next })
}

/// Reads a page of the parts of an upload: their sizes.
///
/// # Errors
/// The problem with the page.
pub(super) fn parts(document: &str) -> Result<PartialPage<u64>, String> {
    let root = root_of(document, "ListPartsResult")?;
    let found = root.children().iter().filter(|child| child.name() == "Part");
    let size = |part: &Element| part.text_of("Size").and_then(|size| size.parse().ok());
    let entries = found.map(size).collect::<Option<Vec<u64>>>().ok_or("a part of an upload has no size")?;
    let mut next = None;
    if root.text_of("IsTruncated") == Some("true") {
        let marker = root.text_of("NextPartNumberMarker").filter(|marker| !marker.is_empty());
        let marker = marker.ok_or("a page of the parts has no end and no next marker")?;
        next = Some(vec![("part-number-marker", marker.to_owned())]);
    }
    Ok(PartialPage { entries, next })
}

fn root_of(document: &str, name: &str) -> Result<Element, String> {
    let root = xml::parse(document).ok_or("the list is not XML")?;
    if root.name() == name {
        return Ok(root);
    }
    Err(format!("the list is a document of the name {} instead of {name}", plain(root.name())))
}

fn entry(element: &Element, is_marker: bool, is_encoded: bool) -> Result<Entry, String> {
    let key = decoded(element.text_of("Key").ok_or("an entry of the list has no key")?, is_encoded)?;
    let lacks = |what: &str| format!("the entry {} of the list has no {what}", plain(&key));
    let date = element.text_of("LastModified").unwrap_or_default();
    let modified = parse_rfc3339_millis(date).ok_or_else(|| lacks("date"))?;
    let modified = if is_marker && is_finer_than_millis(date) { modified / 1000 * 1000 } else { modified };
    let size = match element.text_of("Size") {
        None if is_marker => 0,
        size => size.and_then(|size| size.parse().ok()).ok_or_else(|| lacks("size"))?,
    };
    let etag = element.text_of("ETag").unwrap_or_default().trim_matches('"').to_owned();
    let version_id = element.text_of("VersionId").filter(|id| !id.is_empty()).map(str::to_owned);
    let is_latest = element.text_of("IsLatest") != Some("false");
    let metadata = element.child("UserMetadata");
    let header = |name: &str| {
        let found = metadata?.children().iter().find(|child| child.name().eq_ignore_ascii_case(name));
        found.map(Element::text)
    };
    let has_client_key = header("x-amz-server-side-encryption-customer-algorithm").is_some();
    let settings = metadata.and_then(|_| {
        let tags = parsed_tags(element.text_of("UserTags").unwrap_or_default())?;
        Some(Settings { tags, lock: parsed_lock(header) })
    });
    Ok(Entry { key, version_id, is_marker, is_latest, etag, size, modified, has_client_key, settings })
}

/// Returns whether a date has more digits than S3 gives. Such stores tell only seconds of versions: compared with them, a
/// marker would be newer than a version that followed it in the same second.
fn is_finer_than_millis(date: &str) -> bool {
    date.split_once('.').is_some_and(|(_, fraction)| fraction.trim_end_matches('Z').len() > 3)
}

fn decoded(text: &str, is_encoded: bool) -> Result<String, String> {
    if !is_encoded {
        return Ok(text.to_owned());
    }
    let text = text.replace('+', "%20");
    let decoded = decode(&text).map(std::borrow::Cow::into_owned);
    decoded.map_err(|_| format!("the list has a key that is not UTF-8: {}", plain(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::remote::Lock;

    #[test]
    fn a_page_of_versions_has_ids_dates_and_settings() {
        let document = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListVersionsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
            <IsTruncated>true</IsTruncated><NextKeyMarker>b+%2B</NextKeyMarker><NextVersionIdMarker>null</NextVersionIdMarker>\
            <DeleteMarker><Key>a+b/%C3%BC%2B</Key><LastModified>2026-11-26T12:09:56.878Z</LastModified><ETag></ETag><Size>0</Size>\
            <VersionId>a55f7e1a-7fd0-4355-9db9-93ee4c207557</VersionId></DeleteMarker>\
            <Version><Key>b+%2B</Key><LastModified>2026-11-26T12:09:56.872Z</LastModified><ETag>&#34;49f68a5c8493ec2c0bf489821c21fc3b-2&#34;</ETag>\
            <Size>2</Size><UserMetadata><X-Amz-Meta-A>x</X-Amz-Meta-A><x-amz-object-lock-legal-hold>ON</x-amz-object-lock-legal-hold></UserMetadata>\
            <UserTags>a=b</UserTags><VersionId>null</VersionId></Version><EncodingType>url</EncodingType></ListVersionsResult>";
        let page = versions(document).expect("a page");
        assert!(page.has_settings);
        let expected = [("key-marker", "b +".to_owned()), ("version-id-marker", "null".to_owned())];
        assert_eq!(page.next.as_deref(), Some(&expected[..]));
        let [marker, version] = &page.entries[..] else { panic!("two entries") };
        assert_eq!(
            (marker.key.as_str(), marker.is_marker, marker.modified),
            ("a b/ü+", true, 1_795_694_996_878)
        );
        assert_eq!((marker.settings.as_ref(), marker.parts()), (None, None));
        assert_eq!((version.id(), version.size, version.parts()), ("null", 2, Some(2)));
        let lock = Lock { retention: None, legal_hold: true };
        let settings = Settings { tags: vec![("a".to_owned(), "b".to_owned())], lock };
        assert_eq!(version.settings.as_ref(), Some(&settings));
    }

    #[test]
    fn a_page_of_objects_continues_after_a_token() {
        let document = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>\
            <Contents><Key>a+b</Key><LastModified>2026-11-26T12:09:56Z</LastModified><ETag>\"x\"</ETag><Size>7</Size></Contents></ListBucketResult>";
        let page = objects(document).expect("a page");
        assert_eq!(page.next, Some(vec![("continuation-token", "t".to_owned())]));
        // Without an encoding type, a plus is a plus.
        assert_eq!((page.entries[0].key.as_str(), page.entries[0].id()), ("a+b", "null"));
    }

    #[test]
    fn unfinished_uploads_and_their_parts_are_read() {
        let document = "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>a%20b</NextKeyMarker>\
            <NextUploadIdMarker>1</NextUploadIdMarker><EncodingType>url</EncodingType><Upload><Key>a%20b</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>";
        let page = uploads(document).expect("a page");
        assert_eq!(page.entries, [("a b".to_owned(), "1".to_owned())]);
        let next = [("key-marker", "a b".to_owned()), ("upload-id-marker", "1".to_owned())];
        assert_eq!(page.next.as_deref(), Some(&next[..]));
        let document = "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>\
            <Part><Size>5</Size></Part><Part><Size>7</Size></Part></ListPartsResult>";
        let page = parts(document).expect("a page");
        assert_eq!(
            (page.entries, page.next),
            (vec![5, 7], Some(vec![("part-number-marker", "2".to_owned())]))
        );
        for document in [
            "<ListPartsResult><Part></Part></ListPartsResult>",
            "<ListPartsResult><IsTruncated>true</IsTruncated></ListPartsResult>",
        ] {
            assert!(parts(document).is_err());
        }
        for document in [
            "<ListMultipartUploadsResult><Upload><Key>a</Key></Upload></ListMultipartUploadsResult>",
            "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>",
        ] {
            assert!(uploads(document).is_err());
        }
    }

    #[test]
    fn a_page_that_is_wrong_is_an_error() {
        for document in [
            "",
            "<html></html>",
            "<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>",
            "<ListVersionsResult><Version><Key>a</Key><Size>1</Size></Version></ListVersionsResult>",
            "<ListVersionsResult><Version><Key>a</Key><LastModified>2026-11-26T12:09:56Z</LastModified></Version></ListVersionsResult>",
            "<ListVersionsResult><EncodingType>url</EncodingType><Version><Key>%ff</Key></Version></ListVersionsResult>",
        ] {
            assert!(versions(document).is_err(), "{document}");
        }
    }
}
