//! Digests of content on its way, compared with what was declared.

use std::collections::BTreeMap;
use std::io::{Read, Result};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_md5::Md5;
use crc_fast::CrcAlgorithm;
use ring::digest;

use super::listing::Version;

/// The proof of content: the declared value that it was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The entity tag is made of its MD5.
    Etag,
    /// It has the checksum that its client declared.
    Checksum,
    /// Neither says anything: the tag is opaque.
    Nothing,
}

/// The digests of content that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digests {
    /// SHA-256 in hexadecimal digits.
    pub(super) sha256: String,
    /// MD5 of all of it, unless it has parts.
    pub(super) md5: Option<[u8; 16]>,
    /// The entity tag that S3 makes of it and of the lengths of its parts.
    etag: String,
    /// The checksum of the algorithm that the store declares, in Base64.
    checksum: Option<String>,
}

impl Digests {
    /// Compares the content of a version.
    ///
    /// # Errors
    /// The problem with it.
    pub(super) fn check(&self, version: &Version) -> std::result::Result<Proof, String> {
        let declared = Checksum::of(&version.record.checksums).map(|(_, declared)| declared);
        match (self.etag == *version.record.object.etag, self.checksum.as_deref() == declared) {
            (true, _) => Ok(Proof::Etag),
            (false, true) if declared.is_some() => Ok(Proof::Checksum),
            (false, false) => Err("the content does not have its checksum".to_owned()),
            (false, true) => Ok(Proof::Nothing),
        }
    }
}

/// Computes digests of the content of a version.
#[derive(Clone)]
pub(super) struct Digester {
    sha256: digest::Context,
    /// Of all of it; `None` if it has parts.
    md5: Option<Md5>,
    /// Runs of parts that are not over: how many, and their length. Empty for an object that was put in one piece.
    parts: Vec<(u64, u64)>,
    /// The MD5 of the present part, and how much of it is missing.
    part: (Md5, u64),
    /// The digests of the parts, one after the other.
    of_parts: Vec<u8>,
    checksum: Option<Checksum>,
}

/// A checksum of all of the content.
#[derive(Clone)]
enum Checksum {
    Crc(crc_fast::Digest, usize),
    Ring(digest::Context),
}

impl Checksum {
    /// Returns the first checksum that can be computed and is of all of the content, with its value.
    fn of(declared: &BTreeMap<String, String>) -> Option<(Self, &str)> {
        let crc = |algorithm, bytes| Self::Crc(crc_fast::Digest::new(algorithm), bytes);
        declared.iter().filter(|(_, value)| !value.contains('-')).find_map(|(name, value)| {
            let checksum = match name.as_str() {
                "crc32" => crc(CrcAlgorithm::Crc32IsoHdlc, 4),
                "crc32c" => crc(CrcAlgorithm::Crc32Iscsi, 4),
                "crc64nvme" => crc(CrcAlgorithm::Crc64Nvme, 8),
                "sha1" => Self::Ring(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)),
                "sha256" => Self::Ring(digest::Context::new(&digest::SHA256)),
                "sha512" => Self::Ring(digest::Context::new(&digest::SHA512)),
                _ => return None,
            };
            Some((checksum, value.as_str()))
        })
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(digest, _) => digest.update(bytes),
            Self::Ring(context) => context.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Crc(digest, bytes) => STANDARD.encode(&digest.finalize().to_be_bytes()[8 - bytes..]),
            Self::Ring(context) => STANDARD.encode(context.finish()),
        }
    }
}

impl Digester {
    pub(super) fn new(version: &Version) -> Self {
        let mut digester = Self {
            sha256: digest::Context::new(&digest::SHA256),
            md5: version.parts.is_empty().then(Md5::new),
            parts: version.parts.iter().rev().copied().collect(),
            part: (Md5::new(), 0),
            of_parts: Vec::new(),
            checksum: Checksum::of(&version.record.checksums).map(|(checksum, _)| checksum),
        };
        digester.next_part();
        digester
    }

    /// Begins the next part, if there is one.
    fn next_part(&mut self) {
        if let Some((count, size)) = self.parts.last_mut() {
            *count -= 1;
            self.part = (Md5::new(), *size);
            if *count == 0 {
                self.parts.pop();
            }
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
            return self.update_checksum(bytes);
        }
        self.update_checksum(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = usize::try_from(self.part.1).unwrap_or(usize::MAX).min(rest.len());
            if taken == 0 {
                if self.parts.is_empty() {
                    // There is more content than the parts have.
                    return;
                }
                self.end_part();
                self.next_part();
                continue;
            }
            self.part.0.update(&rest[..taken]);
            self.part.1 -= taken as u64;
            rest = &rest[taken..];
        }
    }

    fn update_checksum(&mut self, bytes: &[u8]) {
        if let Some(checksum) = &mut self.checksum {
            checksum.update(bytes);
        }
    }

    fn end_part(&mut self) {
        let (part, _) = std::mem::replace(&mut self.part, (Md5::new(), 0));
        self.of_parts.extend_from_slice(&part.finish());
    }

    /// Returns the digests of all that was read.
    pub(super) fn finish(mut self) -> Digests {
        let md5 = self.md5.take().map(Md5::finish);
        let etag = if let Some(md5) = md5 {
            hex::encode(md5)
        } else {
            self.end_part();
            // Parts without content.
            while !self.parts.is_empty() {
                self.next_part();
                self.end_part();
            }
            let digest = cairn_md5::md5_digest(&self.of_parts);
            format!("{}-{}", hex::encode(digest), self.of_parts.len() / 16)
        };
        let checksum = self.checksum.map(Checksum::finish);
        Digests { sha256: hex::encode(self.sha256.finish().as_ref()), md5, etag, checksum }
    }
}

/// Content whose digests are computed while it is read.
pub(super) struct Hashed<R> {
    content: R,
    digester: Digester,
    /// Bytes that were read.
    pub(super) bytes: u64,
}

impl<R: Read> Hashed<R> {
    pub(super) fn new(content: R, version: &Version) -> Self {
        Self::going_on(content, Digester::new(version))
    }

    /// Continues digests with the next part of the content.
    pub(super) const fn going_on(content: R, digester: Digester) -> Self {
        Self { content, digester, bytes: 0 }
    }

    pub(super) fn into_digester(self) -> Digester {
        self.digester
    }

    pub(super) fn finish(self) -> Digests {
        self.digester.finish()
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.content.read(buffer)?;
        self.digester.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
