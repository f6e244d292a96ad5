//! The script for fish: a function that finds the command in the line, and a rule for each command and option.

use std::fmt::Write;

use super::{commands, options_with_value};
use crate::usage::{HELP, HELP_DESCRIPTION, Takes, Usage, takes};

/// Text in fish's single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', " "))
}

/// The script.
pub(super) fn script(usages: &[Usage]) -> String {
    let mut text = format!(
        r#"# Completion of cairn's command line in fish, made by `cairn completions fish`.

function __cairn_is
    set -l command cairn
    set -l skip 0
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$command $word"
            case {values}
                set skip 1
            case {commands}
                set command "$command $word"
        end
    end
    test "$command" = "$argv"
end

complete -c cairn -f
"#,
        values = options_with_value(usages).join(" "),
        commands = commands(usages).join(" "),
    );
    for usage in usages {
        // Writing to a string does not fail.
        let rule = format!("complete -c cairn -n '__cairn_is {}'", usage.words);
        for command in &usage.info.commands {
            let description = quoted(command.command.description);
            let _ = writeln!(text, "{rule} -a {} -d {description}", command.name);
        }
        for word in usage.choices() {
            let _ = writeln!(text, "{rule} -a {word}");
        }
        for option in usage.options() {
            let value = match takes(option) {
                Takes::Nothing => "",
                Takes::File => " -r -F",
                Takes::Folder => " -x -a '(__fish_complete_directories)'",
                Takes::Other => " -x",
            };
            let name = option.long.trim_start_matches('-');
            let _ = writeln!(text, "{rule} -l {name}{value} -d {}", quoted(option.description));
        }
        let help = HELP.trim_start_matches('-');
        let _ = writeln!(text, "{rule} -l {help} -d {}", quoted(HELP_DESCRIPTION));
        if usage.positional() == Takes::File {
            let _ = writeln!(text, "{rule} -F");
        }
    }
    text
}
