//! Data folders of stores, which no command writes its output to.

use std::path::Path;

/// Refuses a destination within the data folder.
pub(crate) fn refuse_within(to: &Path, data_dir: &Path) -> Result<(), String> {
    let Ok(store) = std::fs::canonicalize(data_dir) else { return Ok(()) };
    let absolute = std::path::absolute(to).map_err(|error| format!("{}: {error}", to.display()))?;
    let existing = absolute.ancestors().find_map(|path| std::fs::canonicalize(path).ok());
    if existing.is_some_and(|path| path.starts_with(&store)) {
        return Err(format!("{} is in the data folder, which is not written to", to.display()));
    }
    Ok(())
}
