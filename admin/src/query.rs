//! The query of a request, read against the parameters that its route takes. Any other, or one that is given twice, is
//! refused: a misspelt one must not be ignored in silence.

use std::ops::RangeInclusive;

use cairn_http1::{parse_rfc3339_millis, query_pairs};
use cairn_model::Timestamp;

use crate::error::AdminError;

/// The parameters of a request, decoded.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query whose parameters may only be the `known` ones.
    ///
    /// # Errors
    /// `INVALID_REQUEST`, naming what is wrong.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, AdminError> {
        let mut given = Vec::new();
        for pair in query_pairs(query.unwrap_or_default()) {
            let (name, value) = pair.map_err(|error| AdminError::invalid(error.to_string()))?;
            if given.iter().any(|(other, _)| *other == *name) {
                return Err(AdminError::invalid(format!("the query has {name} twice")));
            }
            if !known.contains(&&*name) {
                let takes = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
                return Err(AdminError::invalid(format!("the query takes {takes}; there is no {name}")));
            }
            given.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(given))
    }

    /// The value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A whole number within bounds, in plain digits.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for anything else.
    pub(crate) fn number(&self, name: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>, AdminError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_plain { text.parse().ok() } else { None };
        let number = number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            let (least, most) = (bounds.start(), bounds.end());
            AdminError::invalid(format!("{name} must be a whole number from {least} to {most}"))
        })?;
        Ok(Some(number))
    }

    /// A time (RFC 3339).
    ///
    /// # Errors
    /// `INVALID_REQUEST` for anything else.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, AdminError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let time = parse_rfc3339_millis(text).map(Timestamp).ok_or_else(|| {
            AdminError::invalid(format!("{name} must be a time such as 2026-11-21T05:00:00.000Z"))
        })?;
        Ok(Some(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let known = ["prefix", "limit"];
        let read = |query| Parameters::read(Some(query), &known);
        let parameters = read("prefix=a%20b&limit=7").expect("both are known");
        assert_eq!(parameters.text("prefix"), Some("a b"));
        assert_eq!(parameters.number("limit", 1..=10), Ok(Some(7)));
        for wrong in ["prefiks=a", "prefix=a&prefix=a", "prefix=%zz", "&x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(Parameters::read(None, &[]).is_ok() && Parameters::read(Some(""), &[]).is_ok());
    }

    #[test]
    fn numbers_are_plain_and_bounded() {
        let number = |text: &str| {
            Parameters::read(Some(&format!("n={text}")), &["n"]).and_then(|given| given.number("n", 1..=1000))
        };
        assert_eq!((number("1"), number("1000")), (Ok(Some(1)), Ok(Some(1000))));
        for wrong in ["", "0", "1001", "%2B1", "-1", "1e3", "%201", "99999999999999999999999"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }
}
