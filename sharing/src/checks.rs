//! Rules for what callers choose for links.

use crate::error::LinkError;
use crate::limits::{LABEL_BYTES_MAX, ORIGINS_MAX};
use cairn_model::u64_of;

/// Checks a label.
pub(crate) fn check_label(label: &str) -> Result<(), LinkError> {
    if label.len() > LABEL_BYTES_MAX || label.chars().any(char::is_control) {
        let message = format!("label must have at most {LABEL_BYTES_MAX} bytes and no control characters");
        return Err(LinkError::Invalid(message));
    }
    Ok(())
}

/// Checks a limit of downloads.
pub(crate) fn check_maximum(maximum: Option<u64>) -> Result<(), LinkError> {
    if maximum == Some(0) {
        return Err(LinkError::Invalid("maximum_downloads must be at least 1".to_owned()));
    }
    Ok(())
}

/// Removes repeated origins. There must be 1 to [`ORIGINS_MAX`].
pub(crate) fn checked_origins<T: PartialEq>(origins: Vec<T>) -> Result<Vec<T>, LinkError> {
    if origins.is_empty() || origins.len() > ORIGINS_MAX {
        let message = format!("allowed_origins must have 1 to {} entries", u64_of(ORIGINS_MAX));
        return Err(LinkError::Invalid(message));
    }
    let mut checked = Vec::with_capacity(origins.len());
    for origin in origins {
        if !checked.contains(&origin) {
            checked.push(origin);
        }
    }
    Ok(checked)
}
