//! The name of this program in printed commands.

use std::ffi::OsStr;
use std::path::Path;

use super::quote::shell_word;

/// The name of the program on the search path.
const NAME: &str = "cairn";

/// Returns the word that runs this program in the user's shell: `cairn` if the search path leads to this file, otherwise its
/// full path.
pub(crate) fn shell_command() -> String {
    let Ok(own) = std::env::current_exe() else { return NAME.to_owned() };
    command(&own, &std::env::var_os("PATH").unwrap_or_default())
}

fn command(own: &Path, search_path: &OsStr) -> String {
    let found =
        std::env::split_paths(search_path).map(|folder| folder.join(NAME)).find(|path| path.is_file());
    let is_own = found.is_some_and(|found| match (found.canonicalize(), own.canonicalize()) {
        (Ok(found), Ok(own)) => found == own,
        _ => false,
    });
    if is_own { NAME.to_owned() } else { shell_word(&own.to_string_lossy()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_used_only_if_it_leads_to_this_program() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["own", "linked", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let own = at("own").join("cairn");
        std::fs::write(&own, "").unwrap();
        std::fs::write(at("other").join("cairn"), "").unwrap();
        std::os::unix::fs::symlink(&own, at("linked").join("cairn")).unwrap();
        let with = |folders: &[&str]| {
            let search_path = std::env::join_paths(folders.iter().map(|name| at(name))).unwrap();
            command(&own, &search_path)
        };
        assert_eq!(with(&["linked", "other"]), "cairn");
        assert_eq!(with(&["other", "linked"]), own.to_str().unwrap(), "another program comes first");
        assert_eq!(with(&[]), own.to_str().unwrap());
    }
}
