//! The checksum that a store declares of a version (AWS: "Checking object integrity").

/// The algorithms that are known here, as in the names of headers, and whether their checksum of a whole object can be made of
/// those of its parts.
const KNOWN: [(&str, bool); 10] = [
    ("crc32", true),
    ("crc32c", true),
    ("crc64nvme", true),
    ("sha1", false),
    ("sha256", false),
    ("sha512", false),
    ("md5", false),
    ("xxhash64", false),
    ("xxhash3", false),
    ("xxhash128", false),
];
/// The algorithm that has no composites.
const WITHOUT_COMPOSITE: &str = "crc64nvme";
/// The beginning of the names of checksum headers.
pub(super) const PREFIX: &str = "x-amz-checksum-";

/// A declared checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    /// The algorithm, as in the name of the header.
    pub(crate) algorithm: &'static str,
    /// As the header has it.
    pub(crate) value: String,
}

impl Checksum {
    /// Reads a header. `None` for one that is no checksum, and for an unknown algorithm.
    pub(super) fn of_header(name: &str, value: &str) -> Option<Self> {
        let algorithm = name.strip_prefix(PREFIX)?;
        let (algorithm, _) = KNOWN.iter().find(|(known, _)| *known == algorithm)?;
        Some(Self { algorithm, value: value.to_owned() })
    }

    /// Returns how many parts it is of, if it is of the digests of parts.
    pub(crate) fn parts(&self) -> Option<usize> {
        self.value.split_once('-')?.1.parse().ok()
    }

    /// Returns the header.
    pub(crate) fn header(&self) -> (String, String) {
        (format!("{PREFIX}{}", self.algorithm), self.value.clone())
    }

    /// Returns the headers that begin an upload whose object will have this checksum. `parts` is the number of its parts if
    /// they are those of the source. `None` if it cannot be made of the checksums of the parts.
    pub(crate) fn upload_headers(&self, parts: Option<usize>) -> Option<[(String, String); 2]> {
        let kind = match self.parts() {
            Some(named) if parts == Some(named) && self.algorithm != WITHOUT_COMPOSITE => "COMPOSITE",
            None if KNOWN.contains(&(self.algorithm, true)) => "FULL_OBJECT",
            _ => return None,
        };
        Some(
            [("algorithm", self.algorithm), ("type", kind)]
                .map(|(name, value)| (format!("{PREFIX}{name}"), value.to_owned())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_that_parts_can_have_are_asked_for() {
        let kind = |name: &str, value: &str, parts| {
            let checksum = Checksum::of_header(name, value).expect("a checksum");
            assert_eq!(checksum.header(), (name.to_owned(), value.to_owned()));
            checksum.upload_headers(parts).map(|[_, (_, kind)]| kind)
        };
        assert_eq!(kind("x-amz-checksum-crc32", "AAAAAQ==-3", Some(3)).as_deref(), Some("COMPOSITE"));
        assert_eq!(kind("x-amz-checksum-crc32", "AAAAAQ==", None).as_deref(), Some("FULL_OBJECT"));
        assert_eq!(kind("x-amz-checksum-crc64nvme", "AAAAAQ==", Some(3)).as_deref(), Some("FULL_OBJECT"));
        // Other parts, unknown parts, and what no object in parts has.
        assert_eq!(kind("x-amz-checksum-sha256", "AAAAAQ==-3", Some(2)), None);
        assert_eq!(kind("x-amz-checksum-sha256", "AAAAAQ==-3", None), None);
        assert_eq!(kind("x-amz-checksum-sha256", "AAAAAQ==", Some(3)), None);
        assert_eq!(kind("x-amz-checksum-crc64nvme", "AAAAAQ==-3", Some(3)), None);
        for name in ["x-amz-checksum-md4", "x-amz-checksum-type", "etag"] {
            assert_eq!(Checksum::of_header(name, "x"), None, "{name}");
        }
    }
}
