//! A module and all that it imports, as one file.
//!
//! A browser asks for each module by itself, and knows what a module imports only when it has read it. One file is one
//! request, and compresses better. The modules share one scope there, each after those that it imports. So their names must
//! differ, and each import and export must begin a line in the form that the formatter of the console gives it. Both are
//! checked here.

use std::collections::{BTreeMap, BTreeSet};

/// The beginnings of imports, up to the first character of their path. A path may contain values: `` `./views/${name}.js` ``.
const FORMS: [&str; 3] = ["from \".", "import(\".", "import(`."];

/// A module of the file.
struct Module {
    path: String,
    imports: Vec<Import>,
    /// Its text after the imports.
    body: String,
}

/// An import of a module from another one.
struct Import {
    from: String,
    /// Each name in the other module, and in this one.
    names: Vec<(String, String)>,
}

/// One file of several modules.
pub(crate) struct Bundle {
    /// The path of the file, which is that of the module that imports all others.
    entry: String,
    /// In the order of the file.
    modules: Vec<Module>,
}

impl Bundle {
    /// Reads a module and all that it imports. `read` returns the text of the module with a path.
    ///
    /// # Panics
    /// If modules import each other, or an import has a form that is not understood.
    pub(crate) fn read(entry: &str, read: &dyn Fn(&str) -> String) -> Self {
        let mut bundle = Self { entry: entry.to_owned(), modules: Vec::new() };
        bundle.add(entry, read, &mut Vec::new());
        bundle
    }

    fn add(&mut self, path: &str, read: &dyn Fn(&str) -> String, importing: &mut Vec<String>) {
        assert!(
            !importing.iter().any(|one| one == path),
            "{path} is imported by what it imports: {importing:?}"
        );
        if self.contains(path) {
            return;
        }
        let (imports, body) = split(path, &read(path));
        importing.push(path.to_owned());
        for import in &imports {
            self.add(&import.from, read, importing);
        }
        importing.pop();
        self.modules.push(Module { path: path.to_owned(), imports, body });
    }

    fn contains(&self, path: &str) -> bool {
        self.modules.iter().any(|module| module.path == path)
    }

    /// Returns whether a module is in the file of another one, and so no file of its own.
    pub(crate) fn replaces(&self, path: &str) -> bool {
        path != self.entry && self.contains(path)
    }

    /// Returns the text of the file.
    ///
    /// # Panics
    /// If two modules have a name in common, or an export has a form that is not understood.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut exports = BTreeSet::new();
        let mut modules = BTreeMap::new();
        let mut declare = |path: &str, name: &str| {
            if let Some(other) = modules.insert(name.to_owned(), path.to_owned()) {
                panic!(
                    "{path} and {other} both have the name {name}: they are one file, so rename one of the two"
                );
            }
        };
        for module in &self.modules {
            let renamed =
                module.imports.iter().flat_map(|import| &import.names).filter(|(there, here)| there != here);
            for (there, here) in renamed {
                declare(&module.path, here);
                text.push_str(&format!("const {here} = {there};\n"));
            }
            for line in self.redirect(&module.path, &self.entry, &module.body).lines() {
                let statement = line.strip_prefix("export ").unwrap_or(line);
                if let Some(name) = declared(statement) {
                    declare(&module.path, name);
                    if statement != line {
                        exports.insert(name.to_owned());
                    }
                } else {
                    assert!(statement == line, "{}: only declarations can be exported: {line}", module.path);
                }
                text.push_str(statement);
                text.push('\n');
            }
        }
        let exports = exports.into_iter().collect::<Vec<_>>().join(", ");
        text + &format!("export {{ {exports} }};\n")
    }

    /// Returns the text of a module that is not in the file. What it imports from modules of the file, it imports from the
    /// file.
    pub(crate) fn around(&self, path: &str, text: &str) -> String {
        self.redirect(path, path, text)
    }

    /// Corrects the paths that the module `path` imports, for a text that is served as `served`.
    fn redirect(&self, path: &str, served: &str, text: &str) -> String {
        let mut made = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = FORMS.iter().filter_map(|form| end_of(rest, form)).min() {
            let (before, after) = rest.split_at(begin - 1);
            let quote = before.chars().next_back().expect("the end of a form");
            let end = after.find(quote).expect("the end of a path");
            let target = resolve(path, &after[..end]);
            made.push_str(before);
            made.push_str(&relative(served, if self.contains(&target) { &self.entry } else { &target }));
            rest = &after[end..];
        }
        made + rest
    }
}

/// Returns the index after the first occurrence of `form`.
fn end_of(text: &str, form: &str) -> Option<usize> {
    text.find(form).map(|begin| begin + form.len())
}

/// Splits a module into its imports and what follows them.
fn split(path: &str, text: &str) -> (Vec<Import>, String) {
    let mut imports = Vec::new();
    let mut body = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(line) = rest.split_inclusive('\n').next() {
        if !line.starts_with("import ") {
            body.push_str(line);
            rest = &rest[line.len()..];
            continue;
        }
        let unknown = || panic!("{path}: not an import of names from a module: {line}");
        let end = rest.find(";\n").unwrap_or_else(unknown);
        let (names, from) = rest[..end]
            .strip_prefix("import {")
            .and_then(|import| import.strip_suffix('"')?.split_once("} from \""))
            .unwrap_or_else(|| panic!("{path}: not an import of names from a module: {line}"));
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(|name| {
            let (there, here) = name.split_once(" as ").unwrap_or((name, name));
            (there.to_owned(), here.to_owned())
        });
        imports.push(Import { from: resolve(path, from), names: names.collect() });
        rest = &rest[end + 2..];
    }
    (imports, body)
}

/// Returns the name that a line declares for its whole module.
fn declared(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = ["function* ", "function ", "const ", "let ", "class "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    let end = name.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let name = &name[..end.unwrap_or(name.len())];
    assert!(!name.is_empty(), "a declaration of one name per line is expected: {line}");
    Some(name)
}

/// Returns the path of a module that another one imports by a relative path.
fn resolve(path: &str, relative: &str) -> String {
    let mut parts: Vec<_> = path.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => {
                assert!(parts.pop().is_some(), "{path} imports {relative}, which is outside of the console")
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Returns the relative path by which a module imports another one.
fn relative(path: &str, target: &str) -> String {
    let folder: Vec<_> = path.rsplit_once('/').map_or(Vec::new(), |(folder, _)| folder.split('/').collect());
    let parts: Vec<_> = target.split('/').collect();
    let common = folder.iter().zip(&parts).take_while(|(one, other)| one == other).count();
    let up = "../".repeat(folder.len() - common);
    let start = if up.is_empty() { "./" } else { &up };
    format!("{start}{}", parts[common..].join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULES: [(&str, &str); 4] = [
        (
            "main.js",
            "// The program.\nimport { read } from \"./lib/api.js\";\nimport {\n  fill,\n  show as showFirst,\n} from \
             \"./views/first.js\";\n\nread();\nimport(\"./views/other.js\");\nimport(`./views/${name}.js`);\n",
        ),
        (
            "lib/api.js",
            "export async function read() {\n  return import(`../words/${language}.js`);\n}\nexport let count = 0;\nconst LIMIT = 3;\n",
        ),
        (
            "views/first.js",
            "import { count, read } from \"../lib/api.js\";\nexport class View {}\nexport function* fill() {}\nexport \
             const show = () => import(\"./other.js\");\n",
        ),
        ("views/other.js", "import { read } from \"../lib/api.js\";\nimport { x } from \"../lib/x.js\";\n"),
    ];

    fn module(path: &str) -> String {
        MODULES.iter().find(|(name, _)| *name == path).expect("a module").1.to_owned()
    }

    #[test]
    fn modules_follow_those_that_they_import() {
        let bundle = Bundle::read("main.js", &module);
        assert_eq!(
            bundle.text(),
            "async function read() {\n  return import(`./words/${language}.js`);\n}\nlet count = 0;\nconst LIMIT = 3;\nclass View {}\nfunction* \
             fill() {}\nconst show = () => import(\"./views/other.js\");\nconst showFirst = show;\n// The \
             program.\n\nread();\nimport(\"./views/other.js\");\nimport(`./views/${name}.js`);\nexport { View, count, \
             fill, read, show };\n"
        );
        assert!(bundle.replaces("lib/api.js") && bundle.replaces("views/first.js"));
        assert!(!bundle.replaces("main.js") && !bundle.replaces("views/other.js"));
    }

    #[test]
    fn others_import_from_the_file() {
        let bundle = Bundle::read("main.js", &module);
        assert_eq!(
            bundle.around("views/other.js", &module("views/other.js")),
            "import { read } from \"../main.js\";\nimport { x } from \"../lib/x.js\";\n"
        );
    }

    #[test]
    #[should_panic(expected = "b.js and a.js both have the name size")]
    fn equal_names_are_found() {
        let read = |path: &str| match path {
            "a.js" => "const size = 1;\n".to_owned(),
            "b.js" => "import { x } from \"./a.js\";\nfunction size() {}\n".to_owned(),
            _ => unreachable!(),
        };
        let _ = Bundle::read("b.js", &read).text();
    }

    #[test]
    #[should_panic(expected = "a.js is imported by what it imports")]
    fn circles_are_found() {
        let _ = Bundle::read("a.js", &|path| match path {
            "a.js" => "import { b } from \"./b.js\";\n".to_owned(),
            _ => "import { a } from \"./a.js\";\n".to_owned(),
        });
    }

    #[test]
    #[should_panic(expected = "not an import of names")]
    fn other_imports_are_not_understood() {
        let _ = Bundle::read("a.js", &|_| "import * as all from \"./b.js\";\n".to_owned());
    }

    #[test]
    #[should_panic(expected = "only declarations can be exported")]
    fn other_exports_are_not_understood() {
        let _ = Bundle::read("a.js", &|_| "export default 1;\n".to_owned()).text();
    }
}
