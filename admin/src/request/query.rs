//! Query parameters, parsed and validated.
//!
//! Unknown and repeated parameters are refused, so that a misspelt one is not silently ignored.

use std::ops::RangeInclusive;

use cairn_http1::{parse_rfc3339_millis, query_pairs};
use cairn_model::{TextSearch, Timestamp};

use crate::error::AdminError;
use crate::limits::{CONTAINED_BYTES_MAX, QUERY_PARAMETERS_MAX};
use crate::operation::{Occurrence, QueryParameter};

/// The query parameters of a request, decoded.
#[derive(Default, Debug)]
pub(crate) struct Parameters {
    declared: &'static [QueryParameter],
    sent: Vec<(String, String)>,
}

impl Parameters {
    /// Parses a query. Only the `declared` parameters are allowed.
    ///
    /// # Errors
    /// `INVALID_REQUEST`, with what is wrong.
    pub(crate) fn parse(
        query: Option<&str>,
        declared: &'static [QueryParameter],
    ) -> Result<Self, AdminError> {
        let mut sent: Vec<(String, String)> = Vec::new();
        for pair in query_pairs(query.unwrap_or_default()) {
            let (name, value) = pair.map_err(|error| AdminError::invalid(error.to_string()))?;
            let Some(parameter) = declared.iter().find(|parameter| parameter.is_named(&name)) else {
                return Err(AdminError::invalid(unknown(&name, declared)));
            };
            if parameter.occurrence != Occurrence::Repeated && sent.iter().any(|(other, _)| *other == *name) {
                return Err(AdminError::invalid(format!("the query parameter {name} must not be repeated")));
            }
            if sent.len() >= QUERY_PARAMETERS_MAX {
                let message = format!("a query has at most {QUERY_PARAMETERS_MAX} parameters");
                return Err(AdminError::invalid(message));
            }
            sent.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self { declared, sent })
    }

    /// Returns the value of a parameter.
    ///
    /// # Panics
    /// Panics if the operation does not declare the parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// Returns all values of a parameter that may be repeated.
    ///
    /// # Panics
    /// As [`Self::text`].
    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let is_declared = self.declared.iter().any(|parameter| parameter.name == name);
        assert!(is_declared, "the row of the operation declares the query parameter {name}");
        self.sent.iter().filter(move |(sent, _)| sent == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter that must be given.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is absent.
    pub(crate) fn required(&self, name: &str) -> Result<&str, AdminError> {
        given(name, self.text(name))
    }

    /// Returns what follows `family` in the names of parameters that begin so, with the values.
    pub(crate) fn family(&self, family: &str) -> impl Iterator<Item = (&str, &str)> {
        self.sent.iter().filter_map(move |(name, value)| Some((name.strip_prefix(family)?, value.as_str())))
    }

    /// Parses a parameter as an integer within bounds, in decimal digits only.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is anything else.
    pub(crate) fn number(&self, name: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>, AdminError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_decimal { text.parse().ok() } else { None };
        let number = number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            let (min, max) = (bounds.start(), bounds.end());
            AdminError::invalid(format!("{name} must be an integer from {min} to {max}"))
        })?;
        Ok(Some(number))
    }

    /// Parses a parameter as `true` or `false`, which it is if it is absent.
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is anything else.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, AdminError> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(AdminError::invalid(format!("{name} must be true or false"))),
        }
    }

    /// Parses a parameter as a time (RFC 3339).
    ///
    /// # Errors
    /// `INVALID_REQUEST` when it is anything else.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, AdminError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let time = parse_rfc3339_millis(text).map(Timestamp).ok_or_else(|| {
            AdminError::invalid(format!("{name} must be a time such as 2026-11-21T05:00:00.000Z"))
        })?;
        Ok(Some(time))
    }

    /// Parses the cursor of a list: a time and an id, which belong to one entry and so must agree.
    ///
    /// # Errors
    /// `invalid`, with what is wrong.
    pub(crate) fn cursor<I>(
        &self,
        [name_of_time, name_of_id]: [&'static str; 2],
        parse_id: impl Fn(&str) -> Option<I>,
        time_of: impl Fn(&I) -> Timestamp,
        invalid: impl Fn(String) -> AdminError,
    ) -> Result<Option<I>, AdminError> {
        let (time, id) = match (self.text(name_of_time), self.text(name_of_id)) {
            (None, None) => return Ok(None),
            (Some(time), Some(id)) => (time, id),
            _ => return Err(invalid(format!("{name_of_time} and {name_of_id} must be given together"))),
        };
        let id = parse_id(id).ok_or_else(|| invalid(format!("{name_of_id} is not the id of an event")))?;
        match parse_rfc3339_millis(time) {
            None => Err(invalid(format!("{name_of_time} must be a time such as 2026-11-21T05:00:00.000Z"))),
            Some(time) if time != time_of(&id).0 => {
                Err(invalid(format!("{name_of_time} is not the time of the event {name_of_id}")))
            }
            Some(_) => Ok(Some(id)),
        }
    }
}

/// Returns the message about a parameter that is not declared.
fn unknown(name: &str, declared: &[QueryParameter]) -> String {
    let shown = |parameter: &QueryParameter| match parameter.occurrence {
        Occurrence::Family => format!("{}<name>", parameter.name),
        _ => parameter.name.to_owned(),
    };
    let allowed: Vec<_> = declared.iter().map(shown).collect();
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    format!("unknown query parameter {name}; allowed: {allowed}")
}

/// The names of a cursor after which a page begins.
pub(crate) const AFTER: [&str; 2] = ["after_time", "after_id"];
/// The names of a cursor before which the entries of a page are.
pub(crate) const BEFORE: [&str; 2] = ["before_time", "before_id"];

/// Returns the parsed value of a parameter that must be given.
///
/// # Errors
/// `INVALID_REQUEST` when it is absent.
pub(crate) fn given<T>(name: &str, value: Option<T>) -> Result<T, AdminError> {
    value.ok_or_else(|| AdminError::invalid(format!("the query parameter {name} is required")))
}

/// Parses `contains`, a text that entries of a list contain.
///
/// # Errors
/// `INVALID_REQUEST` when it is empty or too long.
pub(crate) fn contained(parameters: &Parameters) -> Result<Option<TextSearch>, AdminError> {
    let Some(text) = parameters.text("contains") else { return Ok(None) };
    if text.is_empty() || text.len() > CONTAINED_BYTES_MAX {
        let message = format!("contains must have 1 to {CONTAINED_BYTES_MAX} bytes");
        return Err(AdminError::invalid(message));
    }
    Ok(Some(TextSearch::new(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{family, optional, repeated};

    static BOTH: [QueryParameter; 2] = [optional::<String>("prefix"), optional::<u32>("limit")];
    static LIST: [QueryParameter; 1] = [repeated::<String>("prefix")];
    static TAGS: [QueryParameter; 1] = [family::<String>("tag.")];

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let parse = |query| Parameters::parse(Some(query), &BOTH);
        let parameters = parse("prefix=a%20b&limit=7").expect("both are known");
        assert_eq!(parameters.text("prefix"), Some("a b"));
        assert_eq!(parameters.number("limit", 1..=10), Ok(Some(7)));
        for wrong in ["prefiks=a", "prefix=a&prefix=a", "prefix=%zz", "&x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let list = |query| Parameters::parse(Some(query), &LIST);
        assert_eq!(list("prefix=a&prefix=b").expect("a list").texts("prefix").count(), 2);
        assert!(list("limit=1&prefix=a").is_err());
        assert!(list(&"prefix=a&".repeat(QUERY_PARAMETERS_MAX + 1)).is_err());
        let tags = |query| Parameters::parse(Some(query), &TAGS);
        let parameters = tags("tag.a=1&tag.b%20c=").expect("a family");
        assert_eq!(parameters.family("tag.").collect::<Vec<_>>(), [("a", "1"), ("b c", "")]);
        assert!(tags("tag.a=1&tag.a=2").is_err() && tags("taga=1").is_err());
        assert!(Parameters::parse(None, &[]).is_ok() && Parameters::parse(Some(""), &[]).is_ok());
        let message = |error: AdminError| error.message();
        let found = tags("taga=1").map(drop).map_err(message);
        assert_eq!(found, Err("unknown query parameter taga; allowed: tag.<name>".to_owned()));
    }

    #[test]
    fn numbers_are_decimal_and_within_bounds() {
        let number = |text: &str| {
            Parameters::parse(Some(&format!("limit={text}")), &BOTH)
                .and_then(|parameters| parameters.number("limit", 1..=1000))
        };
        assert_eq!((number("1"), number("1000")), (Ok(Some(1)), Ok(Some(1000))));
        for wrong in ["", "0", "1001", "%2B1", "-1", "1e3", "%201", "99999999999999999999999"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }
}
