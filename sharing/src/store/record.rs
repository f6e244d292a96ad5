//! Records of links on disk.
//!
//! Each kind has four tables, named `share_…` and `embed_…`. Records have version 1, apart from shares of members. Numbers in
//! keys are big-endian, numbers in bodies little-endian.
//! ```text
//! tokens       SHA-256 of the token (32)                              kind (1: share, 2: embed), link id (16)
//! …_links      link id (16)                                           JSON, see below
//! …_usage      link id (16)                                           counted downloads (8), last one in ms (8)
//! …_by_object  bucket number (8), SHA-256 of the key (first 16), id (16)   nothing
//! …_by_bucket  bucket number (8), id (16)                             nothing
//! ```
//! A link without a record in `…_usage` was never downloaded. The body of a share:
//! ```text
//! {"bucket":"b","bucket_id":1,"key":"k","version_id":null,"label":"","created_at":<ms>,"created_by":"root","expires_at":null,
//!  "revoked_at":null,"token_hash":"<hex>","sealed_token":"<hex>",
//!  "password":null,"disposition":"inline","maximum_downloads":null}
//! ```
//! An embed has `"allowed_origins":["https://…"]` instead of `password` and `maximum_downloads`. `seal.rs` describes sealed
//! tokens, `types/password.rs` the password.
//!
//! A share of a member has version 2, and at its end `"author":{"issuer":"https://…","subject":"…","policies":["…"]}`. Programs
//! that would not ask the policies cannot read it, so they refuse its visitors.

use crate::types::author::Author;
use crate::types::embed::Embed;
use crate::types::id::{ID_BYTES, LinkId};
use crate::types::link::{Disposition, Link, LinkKind, LinkObject, LinkStatus};
use crate::types::origin::WebOrigin;
use crate::types::password::{PasswordVerifier, StoredPassword};
use crate::types::share::Share;
use crate::types::token::TokenHash;
use cairn_model::{BucketName, ObjectKey, Timestamp, VersionName};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// The version of all records but shares with an author.
pub(super) const RECORD_VERSION: u8 = 1;
/// The version of shares with an author.
const AUTHORED_VERSION: u8 = 2;
/// Bytes of the hash of a key in an index.
const KEY_HASH_BYTES: usize = 16;

/// Returns the number of a kind on disk.
pub(super) const fn kind_byte(kind: LinkKind) -> u8 {
    match kind {
        LinkKind::Share => 1,
        LinkKind::Embed => 2,
    }
}

/// The token of a stored record: what it has besides the link itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredToken {
    pub(super) hash: TokenHash,
    pub(super) sealed: Vec<u8>,
}

/// A kind of links as it is stored. Other crates use it through [`crate::AnyLink`].
pub trait LinkRecord: Clone + Send + Sized + 'static {
    /// The kind.
    const KIND: LinkKind;

    /// Returns what every link has.
    fn link(&self) -> &Link;
    /// As [`Self::link`], to be changed.
    fn link_mut(&mut self) -> &mut Link;
    /// Returns the status at `now`.
    fn status(&self, now: Timestamp) -> LinkStatus;
    /// Returns the members that not every kind has.
    fn own(&self) -> OwnMembers;
    /// Returns whether this member created the link.
    fn is_of(&self, _member: &Author) -> bool {
        false
    }
    /// Makes a link of its parts; `None` if they are invalid.
    fn from_parts(link: Link, own: OwnMembers) -> Option<Self>;
}

/// The JSON body. Those members that are `None` are not written; an inner `None` is written as null.
#[derive(Serialize, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    bucket: Cow<'b, str>,
    bucket_id: u64,
    #[serde(borrow)]
    key: Cow<'b, str>,
    version_id: Option<String>,
    label: String,
    created_at: u64,
    created_by: String,
    expires_at: Option<u64>,
    revoked_at: Option<u64>,
    #[serde(borrow)]
    token_hash: Cow<'b, str>,
    #[serde(borrow)]
    sealed_token: Cow<'b, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_origins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<Option<StoredPassword>>,
    #[serde(borrow)]
    disposition: Cow<'b, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum_downloads: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<Author>,
}

/// The members that not every kind has.
pub struct OwnMembers {
    disposition: Disposition,
    /// Embeds.
    allowed_origins: Option<Vec<String>>,
    /// Shares.
    password: Option<Option<StoredPassword>>,
    /// Shares.
    maximum_downloads: Option<Option<u64>>,
    /// Shares of members.
    author: Option<Author>,
}

impl LinkRecord for Share {
    const KIND: LinkKind = LinkKind::Share;

    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    fn status(&self, now: Timestamp) -> LinkStatus {
        self.status_at(now)
    }

    fn own(&self) -> OwnMembers {
        OwnMembers {
            disposition: self.disposition,
            allowed_origins: None,
            password: Some(self.password.as_ref().map(PasswordVerifier::to_stored)),
            maximum_downloads: Some(self.maximum_downloads),
            author: self.author.clone(),
        }
    }

    fn is_of(&self, member: &Author) -> bool {
        self.is_created_by(member)
    }

    fn from_parts(link: Link, own: OwnMembers) -> Option<Self> {
        let password = match own.password.flatten() {
            Some(stored) => Some(PasswordVerifier::from_stored(stored)?),
            None => None,
        };
        let maximum_downloads = own.maximum_downloads.flatten();
        Some(Self { link, password, disposition: own.disposition, maximum_downloads, author: own.author })
    }
}

impl LinkRecord for Embed {
    const KIND: LinkKind = LinkKind::Embed;

    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    fn status(&self, now: Timestamp) -> LinkStatus {
        self.status_at(now)
    }

    fn own(&self) -> OwnMembers {
        OwnMembers {
            disposition: self.disposition,
            allowed_origins: Some(self.allowed_origins.iter().map(ToString::to_string).collect()),
            password: None,
            maximum_downloads: None,
            author: None,
        }
    }

    fn from_parts(link: Link, own: OwnMembers) -> Option<Self> {
        let origins = own.allowed_origins.filter(|_| own.author.is_none())?;
        let origins = origins.iter().map(|origin| WebOrigin::parse(origin).ok());
        let allowed_origins = origins.collect::<Option<Vec<_>>>()?;
        (!allowed_origins.is_empty()).then_some(Self { link, allowed_origins, disposition: own.disposition })
    }
}

/// Returns the version and the body of a link.
pub(super) fn encode<T: LinkRecord>(record: &T, token: &StoredToken) -> (u8, Vec<u8>) {
    let (link, own) = (record.link(), record.own());
    let body = Body {
        bucket: link.object.bucket.as_str().into(),
        bucket_id: link.object.bucket_id,
        key: link.object.key.as_str().into(),
        version_id: link.object.version.map(|version| version.to_string()),
        label: link.label.clone(),
        created_at: link.created_at.0,
        created_by: link.created_by.clone(),
        expires_at: link.expires_at.map(|end| end.0),
        revoked_at: link.revoked_at.map(|time| time.0),
        token_hash: hex::encode(token.hash.0).into(),
        sealed_token: hex::encode(&token.sealed).into(),
        allowed_origins: own.allowed_origins,
        password: own.password,
        disposition: own.disposition.name().into(),
        maximum_downloads: own.maximum_downloads,
        author: own.author,
    };
    let version = if body.author.is_some() { AUTHORED_VERSION } else { RECORD_VERSION };
    (version, serde_json::to_vec(&body).expect("texts and numbers can be serialized"))
}

/// Reads the body of a link, without its downloads. Returns `None` if it has an unknown form.
pub(super) fn decode<T: LinkRecord>(id: LinkId, version: u8, body: &[u8]) -> Option<(T, StoredToken)> {
    if !matches!(version, RECORD_VERSION | AUTHORED_VERSION) {
        return None;
    }
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    if body.author.is_some() != (version == AUTHORED_VERSION) {
        return None;
    }
    let mut hash = TokenHash([0; 32]);
    hex::decode_to_slice(body.token_hash.as_bytes(), &mut hash.0).ok()?;
    let token = StoredToken { hash, sealed: hex::decode(body.sealed_token.as_bytes()).ok()? };
    let version = match &body.version_id {
        Some(text) => Some(VersionName::parse(text)?),
        None => None,
    };
    let object = LinkObject {
        bucket: BucketName::parse(&body.bucket).ok()?,
        bucket_id: body.bucket_id,
        key: ObjectKey::parse(&body.key).ok()?,
        version,
    };
    let link = Link {
        id,
        object,
        label: body.label,
        created_at: Timestamp(body.created_at),
        created_by: body.created_by,
        expires_at: body.expires_at.map(Timestamp),
        revoked_at: body.revoked_at.map(Timestamp),
        access_count: 0,
        last_accessed_at: None,
    };
    let own = OwnMembers {
        disposition: Disposition::from_name(&body.disposition)?,
        allowed_origins: body.allowed_origins,
        password: body.password,
        maximum_downloads: body.maximum_downloads,
        author: body.author,
    };
    Some((T::from_parts(link, own)?, token))
}

/// For the fuzz target: takes a byte for the kind of the record, its version and its body. What is read is written as the same
/// record.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_fuzzed(kind: u8, version: u8, body: &[u8]) {
    fn check<T: LinkRecord + PartialEq + std::fmt::Debug>(version: u8, body: &[u8]) {
        let id = LinkId([1; ID_BYTES]);
        let Some((link, token)) = decode::<T>(id, version, body) else { return };
        let (version, written) = encode(&link, &token);
        assert_eq!(decode::<T>(id, version, &written), Some((link, token)));
    }
    match kind % 4 {
        0 => check::<Share>(version, body),
        1 => check::<Embed>(version, body),
        2 => {
            if let Some((kind, id)) = decode_token_body(version, body) {
                assert_eq!(token_body(kind, id), body);
            }
        }
        _ => {
            if let Some(usage) = Usage::decode(version, body) {
                assert_eq!(usage.encode(), body);
            }
        }
    }
}

/// Counted downloads of a link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Usage {
    pub(crate) count: u64,
    pub(crate) last_at: Timestamp,
}

impl Usage {
    /// Returns the body on disk.
    pub(super) fn encode(self) -> [u8; 16] {
        let mut body = [0; 16];
        body[..8].copy_from_slice(&self.count.to_le_bytes());
        body[8..].copy_from_slice(&self.last_at.0.to_le_bytes());
        body
    }

    /// Reads a body. Returns `None` if it has an unknown form.
    pub(super) fn decode(version: u8, body: &[u8]) -> Option<Self> {
        let (count, last_at) = body.split_first_chunk()?;
        let last_at = Timestamp(u64::from_le_bytes(last_at.try_into().ok()?));
        (version == RECORD_VERSION).then_some(Self { count: u64::from_le_bytes(*count), last_at })
    }

    /// Writes the downloads into a link that was read.
    pub(super) fn fill(self, link: &mut Link) {
        link.access_count = self.count;
        link.last_accessed_at = (self.count > 0).then_some(self.last_at);
    }
}

/// Returns the body of a record in `tokens`.
pub(super) fn token_body(kind: LinkKind, id: LinkId) -> [u8; 1 + ID_BYTES] {
    let mut body = [kind_byte(kind); 1 + ID_BYTES];
    body[1..].copy_from_slice(&id.0);
    body
}

/// Reads the body of a record in `tokens`.
pub(super) fn decode_token_body(version: u8, body: &[u8]) -> Option<(LinkKind, LinkId)> {
    let (&kind, id) = body.split_first()?;
    let kind = LinkKind::ALL.into_iter().find(|known| kind_byte(*known) == kind)?;
    (version == RECORD_VERSION).then_some((kind, LinkId(id.try_into().ok()?)))
}

/// Returns what the keys of all links of an object begin with in `…_by_object`.
pub(super) fn object_prefix(object: &LinkObject) -> [u8; 8 + KEY_HASH_BYTES] {
    let mut prefix = [0; 8 + KEY_HASH_BYTES];
    prefix[..8].copy_from_slice(&object.bucket_id.to_be_bytes());
    prefix[8..].copy_from_slice(&Sha256::digest(object.key.as_bytes())[..KEY_HASH_BYTES]);
    prefix
}

/// Returns the key of a link in `…_by_object`.
pub(super) fn object_key(object: &LinkObject, id: LinkId) -> Vec<u8> {
    [&object_prefix(object)[..], &id.0].concat()
}

/// Returns the key of a link in `…_by_bucket`.
pub(super) fn bucket_key(bucket_id: u64, id: LinkId) -> [u8; 8 + ID_BYTES] {
    let mut key = [0; 8 + ID_BYTES];
    key[..8].copy_from_slice(&bucket_id.to_be_bytes());
    key[8..].copy_from_slice(&id.0);
    key
}

/// Returns the id at the end of a key of an index, or the key of a link.
pub(super) fn id_of(key: &[u8]) -> Option<LinkId> {
    key.last_chunk().map(|id| LinkId(*id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: LinkId = LinkId([1; 16]);

    /// Golden bodies: a change here is a change of the on-disk format.
    #[test]
    fn record_formats_do_not_change() {
        let common = format!(
            concat!(
                r#"{{"bucket":"abc","bucket_id":7,"key":"k/é","version_id":"null","label":"l","created_at":5,"#,
                r#""created_by":"root","expires_at":9,"revoked_at":null,"token_hash":"{}","sealed_token":"0102","#
            ),
            "ab".repeat(32)
        );
        let password = concat!(
            r#"{"memory_kib":19456,"iterations":2,"salt":"000102030405060708090a0b0c0d0e0f","#,
            r#""hash":"000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f","generation":"0001020304050607"}"#
        );
        let share =
            format!(r#"{common}"password":{password},"disposition":"inline","maximum_downloads":3}}"#);
        let (read, token) = decode::<Share>(ID, 1, share.as_bytes()).expect("reads");
        assert_eq!((read.link.object.key.as_str(), read.maximum_downloads), ("k/é", Some(3)));
        assert_eq!(read.link.object.version, Some(VersionName::Null));
        assert_eq!(token.sealed, [1, 2]);
        assert_eq!(encode(&read, &token), (1, share.clone().into_bytes()));

        let author = r#""author":{"issuer":"https://p.example","subject":"5","policies":["reads"]}}"#;
        let of_member = share.replace(":3}", &format!(":3,{author}"));
        let (read, token) = decode::<Share>(ID, 2, of_member.as_bytes()).expect("reads");
        assert_eq!(read.author.as_ref().map(|author| &*author.subject), Some("5"));
        assert_eq!(encode(&read, &token), (2, of_member.clone().into_bytes()));

        let embed =
            format!(r#"{common}"allowed_origins":["https://a.example"],"disposition":"attachment"}}"#);
        let (read, token) = decode::<Embed>(ID, 1, embed.as_bytes()).expect("reads");
        assert_eq!(read.disposition, Disposition::Attachment);
        assert_eq!(encode(&read, &token), (1, embed.clone().into_bytes()));

        let unknown = share.replace("inline", "x");
        for (version, text) in
            [(3, &share), (2, &share), (1, &of_member), (1, &unknown), (1, &"{}".to_owned())]
        {
            assert!(decode::<Share>(ID, version, text.as_bytes()).is_none(), "{text}");
        }
        let of_member = embed.replace("nt\"}", &format!("nt\",{author}"));
        assert!(decode::<Embed>(ID, 2, of_member.as_bytes()).is_none());
        assert!(decode::<Embed>(ID, 1, share.as_bytes()).is_none());
    }

    #[test]
    fn downloads_and_tokens_round_trip() {
        let usage = Usage { count: 3, last_at: Timestamp(5) };
        assert_eq!(hex::encode(usage.encode()), "03000000000000000500000000000000");
        assert_eq!(Usage::decode(1, &usage.encode()), Some(usage));
        assert_eq!((Usage::decode(2, &usage.encode()), Usage::decode(1, &[0; 15])), (None, None));
        for kind in LinkKind::ALL {
            assert_eq!(decode_token_body(1, &token_body(kind, ID)), Some((kind, ID)));
        }
        assert_eq!(decode_token_body(1, &[3; 17]), None);
    }

    #[test]
    fn index_keys_begin_with_the_bucket_and_end_with_the_id() {
        let object = LinkObject {
            bucket: BucketName::parse("abc").expect("a name"),
            bucket_id: 0x0102,
            key: ObjectKey::parse("k").expect("a key"),
            version: None,
        };
        assert_eq!(hex::encode(&object_key(&object, ID)[..12]), "00000000000001028254c329");
        assert_eq!((id_of(&object_key(&object, ID)), id_of(&bucket_key(7, ID))), (Some(ID), Some(ID)));
    }
}
