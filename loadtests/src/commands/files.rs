//! Writes the objects of a run as files for file servers.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::failure::{LoadError, while_doing};
use crate::objects::content::Content;
use crate::objects::key_space::KeySpace;

/// Writes every key of `keys` as a file under `folder`.
///
/// # Errors
/// [`LoadError::Io`] names the file that could not be written.
pub fn write(folder: &Path, keys: &KeySpace) -> Result<(), LoadError> {
    let content = Content::new(keys.seed);
    for number in 0..keys.count {
        let name = keys.name(number);
        let path = folder.join(&name);
        let doing = || format!("writing {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(while_doing(doing()))?;
        }
        let mut file = File::create(&path).map_err(while_doing(doing()))?;
        let (mut position, mut left) = (content.position(&name, 0), keys.size(number).0);
        while left > 0 {
            let piece = content.piece(position, left);
            file.write_all(piece).map_err(while_doing(doing()))?;
            position = content.advance(position, piece.len());
            left -= piece.len() as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::sizes::Sizes;
    use crate::units::ByteCount;

    #[test]
    fn a_file_has_the_content_of_the_object() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeySpace {
            prefix: "p/".into(),
            count: 2,
            first: 0,
            scatter: false,
            folder_keys: 1,
            seed: 9,
            sizes: Sizes::Fixed(ByteCount(5_000_000)),
            listed: None,
        };
        write(folder.path(), &keys).unwrap();
        let bytes = fs::read(folder.path().join("p/000001/0000000001")).unwrap();
        assert_eq!(bytes.len(), 5_000_000);
        let content = Content::new(9);
        assert!(content.matches(content.position("p/000001/0000000001", 0), &bytes));
    }
}
