//! Values that are not in the file itself: secrets, from another file or from an environment variable.

use std::path::Path;

use toml::Spanned;

use super::source::Problems;
use crate::document::read_line;

/// Longest file that is read, in bytes. The longest value is the URL of a webhook, with 2048.
const FILE_BYTES_MAX: u64 = 4096;

/// The file or the environment variable that holds a value.
pub(super) struct Elsewhere<'t> {
    /// The name of the member, for messages: `secret_key` for `secret_key_file` and `secret_key_env`.
    pub(super) member: &'static str,
    pub(super) file: Option<&'t Spanned<String>>,
    pub(super) variable: Option<&'t Spanned<String>>,
}

impl Elsewhere<'_> {
    /// Returns the value. `None` if there is a problem, or if no place is named.
    ///
    /// A relative file is in the folder of the file that names it.
    pub(super) fn read(&self, folder: &Path, problems: &Problems) -> Option<String> {
        let Self { member, file, variable } = *self;
        let (place, read) = match (file, variable) {
            (Some(file), None) => {
                let path = folder.join(file.get_ref());
                (file.span(), read_line(&path.to_string_lossy(), member, FILE_BYTES_MAX))
            }
            (None, Some(variable)) => (variable.span(), of_environment(member, variable.get_ref())),
            (Some(_), Some(variable)) => {
                problems.add(&variable.span(), format_args!("give either {member}_file or {member}_env"));
                return None;
            }
            (None, None) => return None,
        };
        read.map_err(|error| problems.add(&place, error)).ok()
    }
}

fn of_environment(member: &str, variable: &str) -> Result<String, String> {
    match std::env::var(variable) {
        Ok(value) if value.is_empty() => {
            Err(format!("{member}: the environment variable {variable} is empty"))
        }
        Ok(value) => Ok(value),
        Err(std::env::VarError::NotPresent) => {
            Err(format!("{member}: the environment variable {variable} is not set"))
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(format!("{member}: the environment variable {variable} is not UTF-8"))
        }
    }
}
