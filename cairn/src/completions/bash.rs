//! The script for bash: one function, whose tables are patterns of `case`.

use std::fmt::Write;

use super::{commands, commands_with_file, options_that_take, options_with_value};
use crate::usage::{HELP, Takes, Usage};

/// The script.
pub(super) fn script(usages: &[Usage]) -> String {
    let mut tables = String::new();
    for usage in usages {
        let names: Vec<&str> =
            usage.info.commands.iter().map(|command| command.name).chain(usage.choices()).collect();
        let options: Vec<&str> = usage.options().map(|option| option.long).chain([HELP]).collect();
        let (words, names, options) = (&usage.words, names.join(" "), options.join(" "));
        // Writing to a string does not fail.
        let _ = writeln!(tables, "    '{words}') names='{names}' options='{options}' ;;");
    }
    format!(
        r#"# Completion of cairn's command line in bash, made by `cairn completions bash`.

_cairn() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=cairn names= options= word skip=0 index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${{COMP_WORDS[index]}}
        if ((skip)); then
            skip=0
            continue
        fi
        case "$command $word" in
        {values}) skip=1 ;;
        {commands}) command="$command $word" ;;
        esac
    done
    if ((skip)); then
        case "$command $previous" in
        {files}) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        {folders}) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        esac
        compopt -o filenames 2>/dev/null
        return
    fi
    case "$command" in
{tables}    esac
    if [[ $current != -* ]]; then
        case "$command" in
        {positional})
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            compopt -o filenames 2>/dev/null
            return
            ;;
        esac
    fi
    if [[ $current == -* || -z $names ]]; then
        names=$options
    fi
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
}}

complete -F _cairn cairn
"#,
        values = options_with_value(usages).join(" | "),
        commands = commands(usages).join(" | "),
        files = options_that_take(usages, Takes::File).join(" | "),
        folders = options_that_take(usages, Takes::Folder).join(" | "),
        positional = commands_with_file(usages).join(" | "),
    )
}
