//! Compresses the files of the console and makes a table of them. It also leaves out what browsers do not need.
//!
//! The program and the modules of the first view become one file. All other files stay as they are.
//!
//! The name of their folder in URLs is a hash of all of them. So browsers keep them forever, modules import each other by
//! relative paths, and files of two versions are never mixed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use brotli::enc::BrotliEncoderParams;
use bundle::Bundle;
use content_type::content_type;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// Characters of the hash in the name of the folder.
const VERSION_CHARACTERS: usize = 16;
const PAGE: &str = "index.html";
/// Replaced in the page.
const VERSION_PLACEHOLDER: &str = "{version}";
/// The program. It imports what the first view needs.
const PROGRAM: &str = "main.js";

#[path = "src/bare.rs"]
mod bare;
#[path = "src/bundle.rs"]
mod bundle;
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

/// Returns the bytes compressed with gzip, which all browsers take.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes).expect("memory");
    writer.finish().expect("memory")
}

/// Returns the bytes compressed with Brotli (RFC 7932), a sixth smaller. Browsers take it over TLS and from the own host.
fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let best = BrotliEncoderParams { quality: 11, size_hint: bytes.len(), ..BrotliEncoderParams::default() };
    brotli::BrotliCompress(&mut &bytes[..], &mut compressed, &best).expect("memory");
    compressed
}

/// Returns the page. It names the modules that a browser should load at once: all of them are in the program.
fn page(text: &str, version: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("rel=\"modulepreload\""));
    lines.map(|line| line.replace(VERSION_PLACEHOLDER, version) + "\n").collect()
}

fn main() {
    let web = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("web");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed={}", web.display());
    let mut paths = Vec::new();
    files(&web, &mut paths);
    let read = |name: &str| {
        fs::read_to_string(web.join(name)).unwrap_or_else(|error| panic!("{name} cannot be read: {error}"))
    };
    let bundle = Bundle::read(PROGRAM, &read);
    let mut hash = Sha256::new();
    let mut served = Vec::new();
    for path in &paths {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&web).expect("below").to_str().expect("UTF-8").to_owned();
        if bundle.replaces(&name) {
            continue;
        }
        let text = if name == PROGRAM {
            bare::script(&bundle.text())
        } else if name.ends_with(".js") {
            bare::script(&bundle.around(&name, &read(&name)))
        } else if name.ends_with(".css") {
            bare::style(&read(&name))
        } else {
            read(&name)
        };
        hash.update(&name);
        hash.update(&text);
        served.push((name, text));
    }
    let version = &hex::encode(hash.finalize())[..VERSION_CHARACTERS];
    let mut table = format!("/// The hash of all files.\npub(crate) const VERSION: &str = {version:?};\n");
    table.push_str("/// All files.\npub(crate) static FILES: &[File] = &[\n");
    for (number, (name, text)) in served.into_iter().enumerate() {
        let text = if name == PAGE { page(&text, version) } else { text };
        let write = |extension: &str, bytes: &[u8]| {
            let path = out.join(format!("{number}.{extension}"));
            fs::write(&path, bytes).expect("writable");
            path
        };
        let (brotli, gzip) = (write("br", &brotli(text.as_bytes())), write("gz", &gzip(text.as_bytes())));
        let plain = write("plain", text.as_bytes());
        let kind =
            content_type(&name).unwrap_or_else(|| panic!("{name}: the type of such files is not known"));
        writeln!(
            table,
            "    File {{ path: Cow::Borrowed({name:?}), content_type: {kind:?}, plain: \
             Cow::Borrowed(include_bytes!({plain:?})), brotli: Some(include_bytes!({brotli:?})), \
             gzip: Some(include_bytes!({gzip:?})) }},"
        )
        .expect("memory");
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table).expect("writable");
}
