//! Reading JSON bodies: a struct is written as an object and as nothing else.
//!
//! What serde derives for a struct also takes an array of the fields' values in their order, which no client means to send
//! and the API's description does not have.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// The body as a `T`.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // First from the text: it knows lines and columns, and finds a field that stands twice.
    let parsed = serde_json::from_slice(bytes)?;
    let value: Value = serde_json::from_slice(bytes)?;
    T::deserialize(Exact(&value))?;
    Ok(parsed)
}

/// A value whose objects alone are structs.
#[derive(Clone, Copy)]
struct Exact<'v>(&'v Value);

impl IntoDeserializer<'_, Error> for Exact<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Exact<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Exact))),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), Exact(value)));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_array() {
            Err(Error::invalid_type(Unexpected::Seq, &"an object"))
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// All enums of the API are words.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0.as_str() {
            Some(word) => visitor.visit_enum(word.into_deserializer()),
            None => Err(Error::custom("a word is expected")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        mode: Mode,
        number: Option<u64>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        On,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        name: String,
        inner: Inner,
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[test]
    fn objects_are_read_and_arrays_in_their_place_are_not() {
        let read = |text: &str| parse::<Outer>(text.as_bytes());
        let text = r#"{"name": "a", "inner": {"mode": "on", "number": null}, "list": [{"mode": "on", "number": 7}]}"#;
        let outer = read(text).expect("an object");
        assert_eq!((outer.name.as_str(), outer.inner.number, outer.list[0].number), ("a", None, Some(7)));
        // The first three are taken by what serde derives alone.
        for wrong in [
            r#"["a", {"mode": "on", "number": null}]"#,
            r#"{"name": "a", "inner": ["on", null]}"#,
            r#"{"name": "a", "inner": {"mode": "on"}, "list": [["on", 7]]}"#,
            r#"{"name": "a", "inner": {"mode": "on"}, "name": "b"}"#,
            r#"{"name": "a", "inner": {"mode": "on"}, "more": 1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
