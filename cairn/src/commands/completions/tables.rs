//! The tables of the completion scripts: commands and options with their words, in single quotes.

use crate::commands::usage::{Usage, ValueKind, takes};

/// Returns the words of all commands, each in single quotes. The scripts compare the words of a line with them.
pub(super) fn commands(usages: &[Usage]) -> Vec<String> {
    usages.iter().skip(1).map(|usage| format!("'{}'", usage.words)).collect()
}

/// Returns the options of all commands that take `what`, each after the words of its command and in single quotes.
pub(super) fn options_that_take(usages: &[Usage], what: ValueKind) -> Vec<String> {
    let of = |usage: &Usage| {
        let options = usage.options().filter(|option| takes(option) == what);
        options.map(|option| format!("'{} {}'", usage.words, option.long)).collect::<Vec<_>>()
    };
    usages.iter().flat_map(of).collect()
}

/// Returns the options of all commands that take a value.
pub(super) fn options_with_value(usages: &[Usage]) -> Vec<String> {
    [ValueKind::File, ValueKind::Folder, ValueKind::Other]
        .iter()
        .flat_map(|what| options_that_take(usages, *what))
        .collect()
}

/// Returns the commands whose positional argument is a file.
pub(super) fn commands_with_file(usages: &[Usage]) -> Vec<String> {
    let with_file = usages.iter().filter(|usage| usage.positional() == ValueKind::File);
    with_file.map(|usage| format!("'{}'", usage.words)).collect()
}
