//! Parses JSON bodies with a limited number of values.

use cairn_api::read_request;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Value};
use std::cell::Cell;
use std::fmt;

use crate::limits::JSON_VALUES_MAX;

/// Parses a body.
///
/// # Errors
/// The problem, and where in the text.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let values = Cell::new(0);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Limited(&values).deserialize(&mut reader)?;
    reader.end()?;
    read_request(&value).map_err(|error| {
        // Parsing the text directly finds line and column, if it fails for the same reason.
        let located = serde_json::from_slice::<T>(bytes).err();
        let message = error.to_string();
        located.filter(|located| located.to_string().starts_with(&message)).unwrap_or(error)
    })
}

/// Parses a value that consists of at most [`JSON_VALUES_MAX`] values. Counts them in the cell.
///
/// Repeated names in an object are refused, because parsers differ in which of the values they use (RFC 8259, section
/// 4).
struct Limited<'c>(&'c Cell<usize>);

impl<'de> DeserializeSeed<'de> for Limited<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.set(self.0.get() + 1);
        if self.0.get() > JSON_VALUES_MAX {
            return Err(D::Error::custom(format!("more than {JSON_VALUES_MAX} values")));
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
        while let Some(item) = items.next_element_seed(Limited(self.0))? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Limited(self.0))?;
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
    fn structs_are_parsed_from_objects_only() {
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
            assert!(number(wrong).is_err(), "{wrong}");
        }
        let error = number("5.5").expect_err("not an integer").to_string();
        assert!(error.contains("line 1 column"), "{error}");
        // The text has one error, but 5.0 would be an error too when parsed directly. It must not be reported.
        let error = read(r#"{"name": "a", "inner": {"mode": "on", "number": 5.0}, "more": 1}"#)
            .expect_err("unknown field");
        assert!(error.to_string().contains("unknown field `more`"), "{error}");
        let many = format!(r#"{{"name": "a", "list": [{}]}}"#, vec!["0"; JSON_VALUES_MAX].join(","));
        assert!(read(&many).expect_err("too many").to_string().contains("more than"));
        assert!(read(r#"{"name": "a", "inner": {"mode": "on"}} x"#).is_err());
        // The implementations that serde derives accept the first three.
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
