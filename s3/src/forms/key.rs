//! The key of a form's object, with its file's name.

/// The variable that the name of the file replaces.
pub(super) const VARIABLE: &str = "${filename}";

/// Returns the key with the name of the file in place of each `${filename}`. Of a path, as old browsers sent it, only the last
/// component counts.
pub(crate) fn with_filename(key: &str, filename: &str) -> String {
    let name = filename.rsplit(['/', '\\']).next().unwrap_or_default();
    key.replace(VARIABLE, name)
}

#[cfg(test)]
mod tests {
    use super::with_filename;

    #[test]
    fn file_name_is_put_in_once_and_without_its_path() {
        for (key, filename, expected) in [
            ("a/${filename}", "b c.txt", "a/b c.txt"),
            ("a/${filename}", r"C:\dir\b.txt", "a/b.txt"),
            ("a/${filename}", "../../etc/passwd", "a/passwd"),
            ("${filename}-${filename}", "x", "x-x"),
            ("${filename}", "${filename}", "${filename}"),
            ("${Filename}", "x", "${Filename}"),
            ("a", "x", "a"),
            ("${filename}", "", ""),
        ] {
            assert_eq!(with_filename(key, filename), expected, "{key} {filename}");
        }
    }
}
