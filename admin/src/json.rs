//! Reading JSON bodies as the API's description means them.
//!
//! What serde derives for a struct also takes an array of the fields' values in their order, which no client means to
//! send, and takes no `5.0` where it wants a whole number, which to JSON Schema is one.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Error, Value};
use std::collections::HashSet;
use std::fmt;

/// The body as a `T`.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let _: Unique = serde_json::from_slice(bytes)?;
    let value: Value = serde_json::from_slice(bytes)?;
    // Of two errors that say the same, the one with line and column.
    T::deserialize(Exact(&value)).map_err(|error| serde_json::from_slice::<T>(bytes).err().unwrap_or(error))
}

/// Any JSON in whose objects no name stands twice: readers differ in which of the two they take (RFC 8259, section 4).
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some((name, Self)) = members.next_entry::<String, Self>()? {
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("the field `{twice}` stands twice")));
            }
        }
        Ok(self)
    }
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
            Value::Number(number) => match number.as_f64().and_then(whole) {
                Some(whole) if number.is_f64() => visitor.visit_i64(whole),
                _ => number.deserialize_any(visitor),
            },
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

/// The whole number that is written with a fraction of zeros or an exponent: the same number in JSON.
#[expect(clippy::cast_possible_truncation, reason = "within the whole numbers that a float keeps exactly")]
fn whole(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let number =
            |text: &str| read(&format!(r#"{{"name": "a", "inner": {{"mode": "on", "number": {text}}}}}"#));
        for (text, expected) in [("5.0", 5), ("1e3", 1000), ("18446744073709551615", u64::MAX)] {
            assert_eq!(number(text).expect(text).inner.number, Some(expected));
        }
        for wrong in ["5.5", "-5.0", "1e300", "18446744073709551616"] {
            let error = number(wrong).expect_err(wrong).to_string();
            assert!(error.contains("line 1 column"), "{error}");
        }
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
