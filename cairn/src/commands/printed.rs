//! Tests that every command that the product prints exists: in messages, in the console, and in the documents.

use std::fs;
use std::path::{Path, PathBuf};

use argh::{ArgsInfo, CommandInfoWithArgs, FlagInfoKind};

use super::Cairn;
use super::arguments::{command_of, option_kind};

/// Files that are not part of the product, or not written for its users. The changelog also names commands of the past.
const SKIPPED: [&str; 9] = [
    "target",
    "tests",
    "fuzz",
    "loadtests",
    "benches",
    "node_modules",
    "internals",
    "CHANGELOG.md",
    "printed.rs",
];
const KINDS: [&str; 6] = ["rs", "js", "md", "toml", "yml", "service"];

/// Adds the files of the repository that users may read, or whose texts they see.
fn add_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            add_files(&path, found);
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
            found.push(path);
        }
    }
}

/// Returns the command lines in a text: in quotes, and on lines of their own. They come without the word `cairn`.
fn printed(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("cairn ") {
        let (before, after) = (&text[..start], &text[start + "cairn ".len()..]);
        let end = match before.chars().next_back() {
            Some(quote @ ('`' | '"')) => after.find(quote),
            Some('\n') | None => after.find('\n'),
            // A prompt, a pipe, or the value of a variable before the command.
            Some(' ') if before.ends_with("$ ") || before.ends_with("| ") => after.find(['\n', '`', '"']),
            _ => None,
        };
        found.extend(end.map(|end| after[..end].to_owned()));
    }
    found
}

/// Returns what a command line has that the program does not. Placeholders and arguments may be anything.
fn problem(line: &str) -> Option<String> {
    let mut info: CommandInfoWithArgs = Cairn::get_args_info();
    // A text in a source file may go on in the next line.
    let line = line.replace("\\\n", " ");
    let mut words = line.split_whitespace().map(|word| word.trim_matches(['[', ']', ',', '.', ';', ')']));
    while let Some(word) = words.next() {
        // After `--` comes a command of the user.
        if ["|", ">", "<", "#", "&&", "\\", "--"].contains(&word) {
            break;
        }
        if word.starts_with("--") && word.len() > 2 {
            let name = word.split('=').next().unwrap_or(word);
            match option_kind(&info, name) {
                Some(FlagInfoKind::Option { .. }) if name == word => drop(words.next()),
                Some(_) => {}
                None if name == "--help" || name == "--version" => {}
                None => return Some(format!("no option {name}")),
            }
            continue;
        }
        if info.commands.is_empty()
            || !word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
        {
            // An argument, or a placeholder such as `…`.
            if info.commands.is_empty() {
                continue;
            }
            break;
        }
        if word.is_empty() || word == "help" || word == "version" {
            continue;
        }
        let Some(command) = command_of(&info, word) else {
            return Some(format!("no command {word}"));
        };
        info = command.command.clone();
    }
    None
}

/// The console printed `cairn object list`, which was no command.
#[test]
fn every_printed_command_exists() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut files = Vec::new();
    add_files(repository, &mut files);
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        for line in printed(&text) {
            // The labels of derived keys begin with the same word, and so does the first line of a picture.
            if line.ends_with(" 1") || line.starts_with(' ') {
                continue;
            }
            count += 1;
            let shown = file.strip_prefix(repository).expect("below").display();
            wrong.extend(problem(&line).map(|problem| format!("{shown}: `cairn {line}`: {problem}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} commands");
}

#[test]
fn what_does_not_exist_is_found() {
    let text = "Use `cairn object lst b`, \"cairn bucket show b --jsn\" or\n$ cairn stats\ncairn bucket ls\n";
    let found: Vec<_> = printed(text).iter().map(|line| problem(line)).collect();
    let expected = [Some("no command lst"), Some("no option --jsn"), Some("no command stats"), None];
    assert_eq!(found, expected.map(|text| text.map(str::to_owned)));
}
