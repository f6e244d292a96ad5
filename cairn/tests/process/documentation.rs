//! Compares docs/cli.md with the help of the binary: every command with every option.

use std::collections::{BTreeMap, BTreeSet};

use crate::server::{Variables, run};

const DOCUMENTATION: &str = include_str!("../../../docs/cli.md");
/// Options that the page describes once for all commands.
const COMMON: [&str; 3] = ["--json", "--endpoint", "--help"];

/// The words of each command after `cairn`, with its options and positional arguments.
type Commands = BTreeMap<String, BTreeSet<String>>;

/// Returns the names under a heading of a help text.
fn names<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty());
    // Continued text is indented deeper.
    let entries = lines.filter_map(|line| line.strip_prefix("  ")).filter(|entry| !entry.starts_with(' '));
    entries.filter_map(|entry| entry.split_whitespace().find(|word| *word != "-h,")).collect()
}

fn walk(words: &[&str], found: &mut Commands) {
    let arguments: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
    let (code, help, stderr) = run(&arguments, &Variables::new());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{words:?}");
    let commands = names(&help, "Commands:");
    if commands.is_empty() {
        let options = names(&help, "Options:").into_iter().map(|option| option.trim_end_matches(','));
        let own = options.filter(|option| !COMMON.contains(option)).map(str::to_owned);
        let positional = names(&help, "Positional Arguments:").into_iter().map(|name| format!("<{name}>"));
        found.insert(words.join(" "), own.chain(positional).collect());
    }
    for command in commands {
        let deeper: Vec<&str> = words.iter().copied().chain([command]).collect();
        walk(&deeper, found);
    }
}

/// Returns the commands in rows whose first cell is the usage of a command.
fn documented() -> Commands {
    let usages = DOCUMENTATION.lines().filter_map(|line| line.strip_prefix("| `cairn ")?.split('`').next());
    let mut found = Commands::new();
    for usage in usages {
        let (mut words, mut own, mut value_of_option) = (Vec::new(), BTreeSet::new(), false);
        for word in usage.split_whitespace().map(|word| word.trim_matches(['[', ']', '.'])) {
            if word == "--" {
                // A command of the user follows.
            } else if word.starts_with("--") {
                own.insert(word.to_owned());
            } else if !word.starts_with('<') {
                words.push(word);
            } else if !value_of_option {
                // In a table the bar is escaped.
                own.insert(word.replace("\\|", "|"));
            }
            value_of_option = word.starts_with("--");
        }
        assert!(found.insert(words.join(" "), own).is_none(), "{usage} occurs twice");
    }
    found
}

#[test]
fn documentation_and_help_have_the_same_commands() {
    let mut found = Commands::new();
    walk(&[], &mut found);
    assert!(found.len() > 30, "{found:?}");
    assert_eq!(documented(), found);
    for command in found.keys() {
        let example = format!("\ncairn {command}");
        let follows = |place: usize| DOCUMENTATION[place + example.len()..].starts_with([' ', '\n']);
        let is_shown = DOCUMENTATION.match_indices(&example).any(|(place, _)| follows(place));
        assert!(is_shown, "no example of cairn {command}");
    }
}
