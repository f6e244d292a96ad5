//! Compresses the files of the console and makes a table of them. Browsers need no comments and no indentation.
//!
//! The name of their folder in URLs is a hash of all of them. So browsers keep them forever, modules import each other by
//! relative paths, and files of two versions are never mixed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use content_type::content_type;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// Characters of the hash in the name of the folder.
const VERSION_CHARACTERS: usize = 16;
/// Replaced in `index.html`.
const VERSION_PLACEHOLDER: &str = "{version}";

#[path = "src/content_type.rs"]
mod content_type;

/// Returns all files below a folder, in order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

/// Returns a script or a style sheet without comments and indentation, line by line. Only comments that begin a line are
/// found, so none in a string; a test makes sure that no text has several lines.
fn bare(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut is_inside = false;
    for line in text.lines() {
        let start = line.trim_start();
        is_inside |= start.starts_with("/*");
        if !is_inside && !start.starts_with("//") {
            made.push_str(start);
            made.push('\n');
        }
        is_inside &= !line.contains("*/");
    }
    made
}

fn main() {
    let web = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("web");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed={}", web.display());
    let mut paths = Vec::new();
    files(&web, &mut paths);
    let mut hash = Sha256::new();
    for path in &paths {
        println!("cargo::rerun-if-changed={}", path.display());
        hash.update(path.strip_prefix(&web).expect("below").to_str().expect("UTF-8"));
        hash.update(fs::read(path).expect("readable"));
    }
    let version = &hex::encode(hash.finalize())[..VERSION_CHARACTERS];
    let mut table = format!("/// The hash of all files.\npub(crate) const VERSION: &str = {version:?};\n");
    table.push_str("/// All files.\npub(crate) static FILES: &[File] = &[\n");
    for (number, path) in paths.iter().enumerate() {
        let name = path.strip_prefix(&web).expect("below").to_str().expect("UTF-8").to_owned();
        let mut bytes = fs::read(path).expect("readable");
        if name == "index.html" {
            let text = String::from_utf8(bytes).expect("UTF-8");
            bytes = text.replace(VERSION_PLACEHOLDER, version).into_bytes();
        } else if name.ends_with(".js") || name.ends_with(".css") {
            bytes = bare(&String::from_utf8(bytes).expect("UTF-8")).into_bytes();
        }
        let (plain, gzip) = (out.join(format!("{number}.plain")), out.join(format!("{number}.gz")));
        fs::write(&gzip, compressed(&bytes)).expect("writable");
        fs::write(&plain, bytes).expect("writable");
        let kind =
            content_type(&name).unwrap_or_else(|| panic!("{name}: the type of such files is not known"));
        writeln!(
            table,
            "    File {{ path: Cow::Borrowed({name:?}), content_type: {kind:?}, plain: \
             Cow::Borrowed(include_bytes!({plain:?})), gzip: Some(include_bytes!({gzip:?})) }},"
        )
        .expect("memory");
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table).expect("writable");
}
