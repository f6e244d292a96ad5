//! The policy of a form: what its signer allows others to upload.
//!
//! Source: "POST policy" (AWS). Each field needs a condition, except the file, the policy, the signature and fields whose names
//! begin with `x-ignore-`. The bucket counts as a field.

use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::forms::fields::{FormFields, IGNORED_PREFIX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_http1::parse_rfc3339_millis;
use cairn_model::Timestamp;
use serde_json::Value;

/// Fields that need no condition.
const EXEMPT: [&str; 5] = ["file", "policy", "x-amz-signature", "awsaccesskeyid", "signature"];

/// The operator of a condition on a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Equals,
    StartsWith,
}

/// A condition on a field.
#[derive(PartialEq, Eq, Debug)]
struct Condition {
    operator: Operator,
    /// In lower case. Without one the condition never holds.
    field: Option<String>,
    value: String,
    /// As the policy has it, for the message.
    text: String,
}

/// The sizes that a file may have, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileSizes {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A policy.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct PostPolicy {
    expiration: Timestamp,
    conditions: Vec<Condition>,
    /// The sizes that all conditions allow.
    pub(crate) sizes: FileSizes,
}

fn invalid(what: &str) -> S3Error {
    S3Error::with_message(ErrorCode::InvalidPolicyDocument, format!("Invalid Policy: {what}."))
}

fn denied(what: &str) -> S3Error {
    let because = format!("Invalid according to Policy: {what}");
    S3Error::with_message(ErrorCode::AccessDenied, because.clone()).denied_as(&because)
}

impl PostPolicy {
    /// Parses a policy as a form sends it.
    ///
    /// # Errors
    /// `InvalidPolicyDocument`.
    pub(crate) fn parse(encoded: &str) -> S3Result<Self> {
        let document = STANDARD.decode(encoded.trim_ascii()).map_err(|_| invalid("it is not Base64"))?;
        let document = String::from_utf8(document).map_err(|_| invalid("it is not UTF-8"))?;
        let root: Value = serde_json::from_str(&with_json_escapes(&document))
            .map_err(|error| invalid(&format!("Invalid JSON: {error}")))?;
        let expiration = match root.get("expiration") {
            Some(Value::String(text)) => parse_rfc3339_millis(text)
                .ok_or_else(|| invalid(&format!("Invalid 'expiration' value: '{text}'")))?,
            Some(_) => return Err(invalid("Invalid 'expiration' value")),
            None => return Err(invalid("Policy missing expiration")),
        };
        let Some(Value::Array(list)) = root.get("conditions") else {
            return Err(invalid("Policy missing conditions"));
        };
        let sizes = FileSizes { min: 0, max: u64::MAX };
        let mut policy = Self { expiration: Timestamp(expiration), conditions: Vec::new(), sizes };
        for condition in list {
            policy.add(condition)?;
        }
        Ok(policy)
    }

    fn add(&mut self, condition: &Value) -> S3Result<()> {
        match condition {
            Value::Object(pairs) if pairs.len() == 1 => {
                for (field, value) in pairs {
                    let value = value.as_str().ok_or_else(|| {
                        invalid("Invalid Simple-Condition: the value of a condition must be a string")
                    })?;
                    self.push(Operator::Equals, field, value);
                }
                Ok(())
            }
            Value::Object(_) => Err(invalid(
                "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified",
            )),
            Value::Array(parts) => self.add_list(parts),
            _ => Err(invalid("Invalid Condition: a condition is an object or a list")),
        }
    }

    fn add_list(&mut self, parts: &[Value]) -> S3Result<()> {
        let [Value::String(operator), first, second] = parts else {
            return Err(invalid("Invalid Condition: a list has an operator and two arguments"));
        };
        let operator = match operator.to_ascii_lowercase().as_str() {
            "eq" => Operator::Equals,
            "starts-with" => Operator::StartsWith,
            "content-length-range" => {
                let (Some(min), Some(max)) = (bytes(first)?, bytes(second)?) else {
                    self.add_impossible(parts);
                    return Ok(());
                };
                self.sizes = FileSizes { min: self.sizes.min.max(min), max: self.sizes.max.min(max) };
                return Ok(());
            }
            _ => return Err(invalid(&format!("Invalid Condition: unknown operator '{operator}'"))),
        };
        let (Some(field), Some(value)) = (first.as_str(), second.as_str()) else {
            return Err(invalid("Invalid Condition: the arguments are two strings"));
        };
        match field.strip_prefix('$') {
            Some(field) => self.push(operator, field, value),
            None => self.add_impossible(parts),
        }
        Ok(())
    }

    /// Adds a condition that no form meets. As on AWS, the policy is valid, and the form is refused.
    fn add_impossible(&mut self, parts: &[Value]) {
        let (operator, value) = (Operator::Equals, String::new());
        self.conditions.push(Condition { operator, field: None, value, text: shown(parts) });
    }

    fn push(&mut self, operator: Operator, field: &str, value: &str) {
        let name = match operator {
            Operator::Equals => "eq",
            Operator::StartsWith => "starts-with",
        };
        let text = shown(&[name.into(), format!("${field}").into(), value.into()]);
        let (field, value) = (Some(field.to_lowercase()), value.to_owned());
        self.conditions.push(Condition { operator, field, value, text });
    }

    /// Checks the fields of a form that was posted to `bucket`. The sizes are checked when the file arrives.
    ///
    /// # Errors
    /// `AccessDenied`, with the condition that does not hold.
    pub(crate) fn check(&self, form: &FormFields, bucket: &str, now: Timestamp) -> S3Result<()> {
        if now > self.expiration {
            return Err(denied("Policy expired."));
        }
        for condition in &self.conditions {
            let value = match condition.field.as_deref() {
                Some("bucket") => Some(bucket),
                Some(field) => form.get(field),
                None => None,
            };
            if !value.is_some_and(|value| condition.holds(value)) {
                return Err(denied(&format!("Policy Condition failed: {}", condition.text)));
            }
        }
        let covers = |condition: &Condition, name: &str| condition.field.as_deref() == Some(name);
        let is_covered = |name: &str| self.conditions.iter().any(|condition| covers(condition, name));
        let needs = |name: &&str| !EXEMPT.contains(name) && !name.starts_with(IGNORED_PREFIX);
        let extra: Vec<&str> = std::iter::once("bucket")
            .chain(form.names())
            .filter(|name| needs(name) && !is_covered(name))
            .collect();
        if extra.is_empty() {
            Ok(())
        } else {
            Err(denied(&format!("Extra input fields: {}", extra.join(", "))))
        }
    }
}

impl Condition {
    fn holds(&self, value: &str) -> bool {
        match self.operator {
            Operator::Equals => value == self.value,
            // Each of several content types must begin so (AWS: "Condition matching").
            Operator::StartsWith if self.field.as_deref() == Some("content-type") => {
                value.split(',').all(|kind| kind.trim_ascii_start().starts_with(&self.value))
            }
            Operator::StartsWith => value.starts_with(&self.value),
        }
    }
}

/// Reads a size. Some clients write numbers as strings; another string is no size.
fn bytes(value: &Value) -> S3Result<Option<u64>> {
    let number = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => return Ok(None),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let size = number
        .ok_or_else(|| invalid("Invalid content-length-range: the sizes are numbers of bytes from 0"))?;
    Ok(Some(size))
}

/// Returns a condition for a message.
fn shown(parts: &[Value]) -> String {
    let parts: Vec<String> = parts.iter().map(Value::to_string).collect();
    format!("[{}]", parts.join(", "))
}

/// Replaces the two escapes of policies that JSON does not have: `\$` and `\v`.
fn with_json_escapes(document: &str) -> String {
    let mut json = String::with_capacity(document.len());
    let mut characters = document.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            json.push(character);
            continue;
        }
        match characters.next() {
            Some('$') => json.push('$'),
            Some('v') => json.push_str("\\u000b"),
            escaped => {
                json.push('\\');
                json.extend(escaped);
            }
        }
    }
    json
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
