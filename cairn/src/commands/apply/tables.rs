//! The tables of a file: what `cairn apply` reads, as it is written.
//!
//! Members have the names and types of the management API. A member that is absent is `None`: it is not managed. Three have
//! shorter forms as well: limits of a quota, and lists of rules.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use cairn_api::{
    BucketName, ByteQuota, CorsRule, DefaultRetention, Description, EventType, Name, ObjectQuota,
    PrefixFilter, PublicRule, QuotaMode, SetLifecycleRule, Statement, TargetUrl, VersioningState,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::quantity::{ByteLimit, CountLimit};

/// A bucket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct BucketTable {
    pub(super) name: Spanned<BucketName>,
    pub(super) object_lock: Option<Spanned<bool>>,
    pub(super) default_retention: Option<Spanned<Retention>>,
    pub(super) versioning: Option<Spanned<VersioningState>>,
    pub(super) quota: Option<Spanned<QuotaTable>>,
    pub(super) cors: Option<Spanned<Rules<CorsRule>>>,
    pub(super) lifecycle: Option<Spanned<Rules<SetLifecycleRule>>>,
    pub(super) public: Option<Spanned<PublicTable>>,
}

/// The limits of a bucket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with bytes and objects")]
pub(super) struct QuotaTable {
    pub(super) bytes: Option<Spanned<Limit<ByteQuota>>>,
    pub(super) objects: Option<Spanned<Limit<ObjectQuota>>>,
}

/// Rules: an array, or a table with the member `rules`.
pub(super) struct Rules<T>(pub(super) Vec<Spanned<T>>);

/// The public access of a bucket: an array of rules, or a table.
#[derive(Default)]
pub(super) struct PublicTable {
    pub(super) rules: Option<Vec<Spanned<PublicRule>>>,
    pub(super) blocked: Option<bool>,
}

/// A default retention; `None` removes it.
pub(super) struct Retention(pub(super) Option<DefaultRetention>);

/// A dimension of a quota, as the management API has it.
pub(super) struct Limit<Q>(pub(super) Q);

/// A policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct PolicyTable {
    pub(super) name: Spanned<Name>,
    pub(super) description: Option<Spanned<Description>>,
    pub(super) statements: Spanned<Vec<Spanned<Statement>>>,
}

/// A service account.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct AccountTable {
    pub(super) name: Spanned<Name>,
    pub(super) description: Option<Spanned<Description>>,
    pub(super) enabled: Option<bool>,
    pub(super) policies: Option<Vec<Spanned<Name>>>,
    pub(super) credential: Option<Spanned<CredentialTable>>,
}

/// The keys of an account. The secret is elsewhere.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with access_key, and either secret_key_file or secret_key_env"
)]
pub(super) struct CredentialTable {
    pub(super) access_key: Spanned<String>,
    pub(super) secret_key_file: Option<Spanned<String>>,
    pub(super) secret_key_env: Option<Spanned<String>>,
}

/// A webhook. The URL of its target may contain a secret, and can therefore be elsewhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct WebhookTable {
    pub(super) target_url: Option<Spanned<TargetUrl>>,
    pub(super) target_url_file: Option<Spanned<String>>,
    pub(super) target_url_env: Option<Spanned<String>>,
    pub(super) event_types: Spanned<Vec<EventType>>,
    pub(super) bucket_filter: Option<BucketName>,
    pub(super) object_prefix_filter: Option<PrefixFilter>,
    pub(super) enabled: Option<bool>,
}

/// A value with an array form and a table form.
trait ArrayOrTable<'de>: Sized {
    /// The table.
    type Table: Deserialize<'de> + Into<Self>;
    /// The type of an array's elements.
    type Item: Deserialize<'de>;
    const EXPECTED: &'static str;

    fn of_items(items: Vec<Self::Item>) -> Self;
}

/// Reads either form.
struct Either<V>(PhantomData<V>);

impl<'de, V: ArrayOrTable<'de>> Visitor<'de> for Either<V> {
    type Value = V;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(V::EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<V, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(V::of_items(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V, A::Error> {
        V::Table::deserialize(MapAccessDeserializer::new(members)).map(Into::into)
    }
}

/// The table form of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesTable<T> {
    rules: Vec<Spanned<T>>,
}

impl<T> From<RulesTable<T>> for Rules<T> {
    fn from(table: RulesTable<T>) -> Self {
        Self(table.rules)
    }
}

impl<'de, T: Deserialize<'de>> ArrayOrTable<'de> for Rules<T> {
    type Table = RulesTable<T>;
    type Item = Spanned<T>;
    const EXPECTED: &'static str = "an array of rules";

    fn of_items(items: Vec<Spanned<T>>) -> Self {
        Self(items)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Rules<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(Either(PhantomData))
    }
}

/// The table form of public access.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicMembers {
    rules: Option<Vec<Spanned<PublicRule>>>,
    blocked: Option<bool>,
}

impl From<PublicMembers> for PublicTable {
    fn from(PublicMembers { rules, blocked }: PublicMembers) -> Self {
        Self { rules, blocked }
    }
}

impl<'de> ArrayOrTable<'de> for PublicTable {
    type Table = PublicMembers;
    type Item = Spanned<PublicRule>;
    const EXPECTED: &'static str = "an array of rules, or a table with rules and blocked";

    fn of_items(items: Vec<Spanned<PublicRule>>) -> Self {
        Self { rules: Some(items), blocked: None }
    }
}

impl<'de> Deserialize<'de> for PublicTable {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(Either(PhantomData))
    }
}

/// A dimension of a quota with a short form: a number, or a text as for `cairn quota set`.
pub(super) trait Dimension: DeserializeOwned {
    const EXPECTED: &'static str;

    /// Reads the short form.
    fn parse(text: &str) -> Result<Option<u64>, String>;
    fn of(limit: Option<u64>) -> Self;
}

const fn mode(limit: Option<u64>) -> QuotaMode {
    if limit.is_some() { QuotaMode::Limit } else { QuotaMode::Unlimited }
}

impl Dimension for ByteQuota {
    const EXPECTED: &'static str =
        "a number of bytes, a size such as \"10GiB\", \"unlimited\", or a table with mode";

    fn parse(text: &str) -> Result<Option<u64>, String> {
        ByteLimit::from_str(text).map(|ByteLimit(limit)| limit).map_err(|error| error.to_string())
    }

    fn of(bytes: Option<u64>) -> Self {
        Self { mode: mode(bytes), bytes }
    }
}

impl Dimension for ObjectQuota {
    const EXPECTED: &'static str = "a number of objects, \"unlimited\", or a table with mode";

    fn parse(text: &str) -> Result<Option<u64>, String> {
        CountLimit::from_str(text).map(|CountLimit(limit)| limit).map_err(|error| error.to_string())
    }

    fn of(objects: Option<u64>) -> Self {
        Self { mode: mode(objects), objects }
    }
}

struct LimitVisitor<Q>(PhantomData<Q>);

impl<'de, Q: Dimension> Visitor<'de> for LimitVisitor<Q> {
    type Value = Limit<Q>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Q::EXPECTED)
    }

    fn visit_u64<E: Error>(self, limit: u64) -> Result<Self::Value, E> {
        Ok(Limit(Q::of(Some(limit))))
    }

    fn visit_i64<E: Error>(self, limit: i64) -> Result<Self::Value, E> {
        let limit = u64::try_from(limit).map_err(|_| E::custom(format!("{limit} is not {}", Q::EXPECTED)))?;
        self.visit_u64(limit)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Q::parse(text).map(|limit| Limit(Q::of(limit))).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        Q::deserialize(MapAccessDeserializer::new(members)).map(Limit)
    }
}

impl<'de, Q: Dimension> Deserialize<'de> for Limit<Q> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(LimitVisitor(PhantomData))
    }
}

/// The word that removes a default retention: TOML has no null.
const NO_RETENTION: &str = "none";

struct RetentionVisitor;

impl<'de> Visitor<'de> for RetentionVisitor {
    type Value = Retention;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table with mode, and days or years; or \"{NO_RETENTION}\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == NO_RETENTION {
            return Ok(Retention(None));
        }
        Err(E::custom(format!("{text:?} is not \"{NO_RETENTION}\", which removes the default retention")))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        DefaultRetention::deserialize(MapAccessDeserializer::new(members))
            .map(|retention| Retention(Some(retention)))
    }
}

impl<'de> Deserialize<'de> for Retention {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(RetentionVisitor)
    }
}
