//! Reads JSON values as the OpenAPI document describes them: requests, and responses of servers that may be newer.
//!
//! The implementations that serde derives differ in two ways. For a struct they also accept an array of the fields' values,
//! which nobody means to send. For an integer they refuse `5.0`, which is an integer in JSON Schema.
//!
//! Some types are parts of requests as well as of responses, such as [`Statement`](crate::Statement). A request with a
//! member that the server does not know is refused, so these types refuse unknown members. A client must ignore them: a
//! later server may have added them.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Error, Value};

/// Reads a request, or a part of it. Members that its types do not have are refused if the types say so.
///
/// # Errors
/// A member is missing, unknown, or has another type.
pub fn read_request<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Json { value, ignores_unknown: false })
}

/// Reads a response, or a part of it. Members that its types do not have are ignored, at every depth.
///
/// # Errors
/// A member is missing, or has another type.
pub fn read_response<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Json { value, ignores_unknown: true })
}

/// Reads a member of a response like [`read_response`]. Needed for members of types that are flattened into others: serde
/// keeps the values of these aside, where the deserializer of the response does not see them.
pub(crate) fn tolerant<'de, D: Deserializer<'de>, T: DeserializeOwned>(value: D) -> Result<T, D::Error> {
    read_response(&Value::deserialize(value)?).map_err(D::Error::custom)
}

/// Replaces the names of Rust types in an error message of serde by those of the document's format: `a sequence` by `an
/// array`, `u32` by `a whole number`. `table` is the format's name for a struct: `an object` in JSON, `a table` in TOML.
pub fn in_document_terms(message: &str, table: &str) -> String {
    const EXPECTED: &str = "expected ";
    let noun = table.rsplit(' ').next().unwrap_or(table);
    let message = message.replace("invalid type: map,", &format!("invalid type: {noun},"));
    let message = message.replace("invalid type: sequence,", "invalid type: array,");
    let Some((before, rest)) = message.split_once(EXPECTED) else { return message };
    let (expected, place) = rest.find(" at line").map_or((rest, ""), |at| rest.split_at(at));
    let is_type = before.contains("invalid type");
    let named = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" if is_type => "a whole number",
        "u8" => "0 to 255",
        "u16" => "0 to 65535",
        "u32" => "0 to 4294967295",
        "u64" | "usize" => "a whole number from 0",
        "a map" | "map" => table,
        "a sequence" | "sequence" => "an array",
        _ if expected.starts_with("struct ") => table,
        _ => expected,
    };
    format!("{before}{EXPECTED}{named}{place}")
}

/// A deserializer of a value that accepts only objects as structs, and `5.0` as an integer.
#[derive(Clone, Copy)]
struct Json<'v> {
    value: &'v Value,
    /// Whether a struct sees only the members that it has.
    ignores_unknown: bool,
}

impl<'v> Json<'v> {
    const fn of(self, value: &'v Value) -> Self {
        Self { value, ..self }
    }

    fn visit<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match number.as_f64().and_then(integer) {
                Some(integer) if number.is_f64() => visitor.visit_i64(integer),
                _ => number.deserialize_any(visitor),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(|item| self.of(item))))
            }
            Value::Object(members) => {
                let known = members.iter().filter(|(name, _)| is_known(name));
                let known = known.map(|(name, value)| (name.as_str(), self.of(value)));
                visitor.visit_map(MapDeserializer::new(known))
            }
        }
    }
}

impl IntoDeserializer<'_, Error> for Json<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Json<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit(visitor, |_| true)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.value.is_array() {
            return Err(Error::invalid_type(Unexpected::Seq, &"an object"));
        }
        self.visit(visitor, |name| !self.ignores_unknown || fields.contains(&name))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// All enums of the API are strings.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value.as_str() {
            Some(name) => visitor.visit_enum(name.into_deserializer()),
            None => Err(Error::custom("expected a string")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// Returns the integer that a number with a zero fraction or an exponent represents.
#[expect(clippy::cast_possible_truncation, reason = "within the integers that a float represents exactly")]
fn integer(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::read_response;
    use crate::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    /// Adds a member to every object.
    fn with_more(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.values_mut().for_each(with_more);
                members.insert("added_later".to_owned(), json!({"deep": [{"deeper": null}]}));
            }
            Value::Array(items) => items.iter_mut().for_each(with_more),
            _ => {}
        }
    }

    /// Returns the response, which a later server has sent, as a client reads it.
    fn read<T: DeserializeOwned + serde::Serialize>(mut response: Value) {
        let expected = response.clone();
        with_more(&mut response);
        let read: T = read_response(&response).unwrap_or_else(|error| panic!("{error}: {response}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), expected);
    }

    const TIME: &str = "2026-01-02T03:04:05.000Z";
    const ID: &str = "019b0000-0000-7000-8000-000000000001";

    /// A client that refused what a later server had added could not be used with it, not even to list policies.
    #[test]
    fn members_that_were_added_later_are_ignored_at_every_depth() {
        let statement = json!({
            "effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:b/*"], "source_ip": ["10.0.0.0/8"]
        });
        let policy = json!({
            "id": ID, "name": "n", "description": "", "statements": [statement], "created_at": TIME, "attached_to": [ID]
        });
        read::<PolicyList>(json!({ "policies": [policy] }));
        let rules = json!([{"id": "r", "allowed_origins": ["*"], "allowed_methods": ["GET"], "allowed_headers": [], "expose_headers": []}]);
        read::<CorsRules>(json!({ "rules": rules }));
        let quota = json!({"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "unlimited"}});
        read::<BucketList>(json!({"buckets": [{
            "name": "b", "created_at": TIME, "versioning": "Enabled", "object_lock": true, "quota": quota,
            "usage": {"bytes": 1, "objects": 2}
        }]}));
        read::<ObjectLock>(
            json!({"object_lock": true, "default_retention": {"mode": "GOVERNANCE", "days": 3}}),
        );
        read::<ObjectLock>(json!({"object_lock": true, "default_retention": null}));
        let retention = json!({"mode": "COMPLIANCE", "retain_until": TIME});
        read::<RetentionOfVersion>(json!({ "retention": retention }));
        read::<LegalHold>(json!({"legal_hold": true}));
        read::<PublicAccess>(
            json!({"rules": [{"prefix": "p/", "read": true, "list": false}], "blocked": false}),
        );
        read::<Tag>(json!({"key": "k", "value": "v"}));
    }

    /// Members of types that are flattened into others are read from where serde keeps them.
    #[test]
    fn members_that_were_added_later_are_ignored_in_flattened_types() {
        let mut record = json!({
            "key": "k", "size": 1, "etag": "e", "last_modified": TIME, "content_type": "text/plain",
            "version_id": ID, "retention": {"mode": "COMPLIANCE", "retain_until": TIME}, "legal_hold": false,
            "metadata": {}, "headers": {}, "checksums": {}, "encrypted": false
        });
        let expected = record.clone();
        with_more(&mut record["retention"]);
        record["added_later"] = json!({});
        let read: ObjectRecord = read_response(&record).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), expected);
        record.as_object_mut().unwrap().retain(|name, _| name != "retention" && name != "version_id");
        assert!(read_response::<ObjectRecord>(&record).unwrap().object.retention.is_none());
    }

    #[test]
    fn what_is_missing_or_of_another_type_is_an_error() {
        assert!(read_response::<LegalHold>(&json!({})).is_err());
        assert!(read_response::<LegalHold>(&json!({"legal_hold": 1})).is_err());
        assert!(read_response::<LegalHold>(&json!([true])).is_err(), "serde accepts it");
    }

    #[test]
    fn requests_refuse_what_responses_ignore() {
        let statement =
            json!({"effect": "allow", "actions": [], "resources": [], "added_later": {}}).to_string();
        let error = serde_json::from_str::<Statement>(&statement).err().unwrap().to_string();
        assert!(error.starts_with("unknown field `added_later`, expected one of `effect`"), "{error}");
    }
}
