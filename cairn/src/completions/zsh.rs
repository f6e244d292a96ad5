//! The script for zsh, with descriptions: for a folder of `fpath` under the name `_cairn`, or to be sourced.

use std::fmt::Write;

use super::{commands, commands_with_file, options_that_take, options_with_value};
use crate::usage::{HELP, HELP_DESCRIPTION, Takes, Usage};

/// A name and its description as `_describe` takes them, in single quotes.
fn described(name: &str, description: &str) -> String {
    let text = format!("{}:{}", name.replace(':', "\\:"), description.replace('\n', " "));
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The script.
pub(super) fn script(usages: &[Usage]) -> String {
    let mut tables = String::new();
    for usage in usages {
        let below = usage.info.commands.iter();
        let names: Vec<_> = below
            .map(|command| described(command.name, command.command.description))
            .chain(usage.choices().map(|word| format!("'{word}'")))
            .collect();
        let options = usage.options().map(|option| described(option.long, option.description));
        let options: Vec<_> = options.chain([described(HELP, HELP_DESCRIPTION)]).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            tables,
            "    '{}')\n        commands=({})\n        options=({})\n        ;;",
            usage.words,
            names.join(" "),
            options.join(" ")
        );
    }
    format!(
        r#"#compdef cairn
# Completion of cairn's command line in zsh, made by `cairn completions zsh`.

_cairn() {{
    local command=cairn word
    local -i index skip=0
    local -a commands options
    for ((index = 2; index < CURRENT; index++)); do
        word=$words[index]
        if ((skip)); then
            skip=0
            continue
        fi
        case "$command $word" in
        ({values}) skip=1 ;;
        ({commands}) command="$command $word" ;;
        esac
    done
    if ((skip)); then
        case "$command $words[CURRENT-1]" in
        ({files}) _files ;;
        ({folders}) _files -/ ;;
        esac
        return
    fi
    case "$command" in
{tables}    esac
    if [[ $words[CURRENT] == -* ]]; then
        _describe -o option options
        return
    fi
    case "$command" in
    ({positional}) _files ;;
    (*) (($#commands)) && _describe command commands ;;
    esac
}}

if [[ $funcstack[1] == _cairn ]]; then
    _cairn "$@"
else
    compdef _cairn cairn
fi
"#,
        values = options_with_value(usages).join(" | "),
        commands = commands(usages).join(" | "),
        files = options_that_take(usages, Takes::File).join(" | "),
        folders = options_that_take(usages, Takes::Folder).join(" | "),
        positional = commands_with_file(usages).join(" | "),
    )
}
