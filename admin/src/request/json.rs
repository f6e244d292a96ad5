//! Parses JSON bodies with a limited number of values.

use cairn_api::read_request;
use cairn_model::json;
use serde::de::DeserializeOwned;
use serde_json::Error;

use crate::limits::JSON_VALUES_MAX;

/// Parses a body. Repeated names are refused.
///
/// # Errors
/// The problem, and where in the text.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let value = json::parse(bytes, JSON_VALUES_MAX)?;
    read_request(&value).map_err(|error| {
        // Parsing the text directly finds line and column, if it fails for the same reason.
        let located = serde_json::from_slice::<T>(bytes).err();
        let message = error.to_string();
        located.filter(|located| located.to_string().starts_with(&message)).unwrap_or(error)
    })
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
