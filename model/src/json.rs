//! JSON documents of clients: with a limited number of values, and without repeated names.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Value};
use std::cell::Cell;
use std::fmt;

/// Parses a document of at most `values_max` values.
///
/// Repeated names in an object are refused, because parsers differ in which of the values they use (RFC 8259, section 4).
///
/// # Errors
/// The problem, and where in the text.
pub fn parse(text: &[u8], values_max: usize) -> Result<Value, Error> {
    let values = Cell::new(0);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Limited { values: &values, values_max }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Parses a value, and counts it and those in it.
#[derive(Clone, Copy)]
struct Limited<'c> {
    values: &'c Cell<usize>,
    values_max: usize,
}

impl<'de> DeserializeSeed<'de> for Limited<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > self.values_max {
            return Err(D::Error::custom(format!("more than {} values", self.values_max)));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Limited<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            if read.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn repeated_names_and_too_many_values_are_refused() {
        assert!(parse(br#"{"a": {"b": [1, "x", null, true, -1, 0.5]}, "b": 2}"#, 10).is_ok());
        assert!(parse(br#"{"a": [1, 2]}"#, 3).is_err());
        for wrong in [r#"{"a": 1, "a": 1}"#, r#"[{"a": {"b": 1, "c": 2, "\u0062": 3}}]"#, "{} {}", "{", ""] {
            assert!(parse(wrong.as_bytes(), 100).is_err(), "{wrong}");
        }
    }
}
