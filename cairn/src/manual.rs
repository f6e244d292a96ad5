//! `cairn man`: the manual page, in roff with the macros of man(7), written from argh's description of the command line
//! and from the table of configuration keys.

use std::fmt::Write;

use argh::{ArgsInfo, FlagInfo, FlagInfoKind, FromArgs, Optionality, PositionalInfo};
use cairn_server::config::{ALL_KEYS, Availability, Key};

use crate::agent::CA_VARIABLE;
use crate::failure::Outcome;
use crate::output;
use crate::usage::{HELP, HELP_DESCRIPTION, Usage, usages};

/// Print the manual page cairn(1) in roff.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "man", help_triggers("-h", "--help"))]
pub(crate) struct Manual {}

impl Manual {
    /// Prints the page.
    #[expect(clippy::unused_self, reason = "as every command")]
    pub(crate) fn run(&self) -> Outcome {
        output::print(&page(&usages()))
    }
}

/// The page.
fn page(usages: &[Usage]) -> String {
    let Some(program) = usages.first() else { return String::new() };
    let mut text = format!(
        ".\\\" Made by `cairn man`.\n.TH CAIRN 1 \"\" \"cairn {version}\" \"User Commands\"\n\
         .SH NAME\ncairn \\- {summary}\n\
         .SH SYNOPSIS\n.B cairn\n.I command\n.RI [ argument ...]\n\
         .SH DESCRIPTION\n{description}\n",
        version = env!("CARGO_PKG_VERSION"),
        summary = escaped(SUMMARY),
        description = filled(program.info.description),
    );
    for note in program.info.notes {
        paragraph(&mut text, note);
    }
    text.push_str(".SH COMMANDS\n");
    for usage in usages.iter().filter(|usage| usage.info.commands.is_empty()) {
        command(&mut text, usage);
    }
    text.push_str(".SH OPTIONS\n");
    for option in program.options() {
        tagged(&mut text, option);
    }
    environment(&mut text);
    text.push_str(".SH EXIT STATUS\n.TP\n.B 0\ndone\n");
    for code in program.info.error_codes {
        add(&mut text, format_args!(".TP\n.B {}\n{}\n", code.code, filled(code.description)));
    }
    text
}

/// What the line of apropos(1) says.
const SUMMARY: &str = "single-node, S3-compatible object store";

/// Writing to a string does not fail.
fn add(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}

fn paragraph(text: &mut String, words: &str) {
    add(text, format_args!(".PP\n{}\n", filled(words)));
}

/// A command under a heading of its own: usage, what it does, its arguments.
fn command(text: &mut String, usage: &Usage) {
    add(text, format_args!(".SS {}\n.B {}\n", escaped(&usage.words), escaped(&usage.words)));
    for positional in usage.info.positionals {
        add(text, format_args!("{}\n", optional(&format!("<{}>", positional.name), &positional.optionality)));
    }
    for option in usage.options() {
        let value = match option.kind {
            FlagInfoKind::Switch => String::new(),
            FlagInfoKind::Option { arg_name } => format!(" <{arg_name}>"),
        };
        add(text, format_args!("{}\n", optional(&format!("{}{value}", option.long), &option.optionality)));
    }
    paragraph(text, usage.info.description);
    for PositionalInfo { name, description, .. } in usage.info.positionals {
        add(text, format_args!(".TP\n.I {}\n{}\n", escaped(name), filled(description)));
    }
    for option in usage.options() {
        tagged(text, option);
    }
    add(text, format_args!(".TP\n.B {}\n{}\n", escaped(HELP), filled(HELP_DESCRIPTION)));
}

/// A word of a usage, in brackets where it may be left out.
fn optional(word: &str, optionality: &Optionality) -> String {
    let word = escaped(word);
    match optionality {
        Optionality::Required => word,
        Optionality::Optional => format!("[{word}]"),
        Optionality::Repeating | Optionality::Greedy => format!("[{word} ...]"),
    }
}

fn tagged(text: &mut String, option: &FlagInfo<'_>) {
    match option.kind {
        FlagInfoKind::Switch => add(text, format_args!(".TP\n.B {}\n", escaped(option.long))),
        FlagInfoKind::Option { arg_name } => {
            add(text, format_args!(".TP\n.BI {} \" {}\"\n", escaped(option.long), escaped(arg_name)));
        }
    }
    add(text, format_args!("{}\n", filled(option.description)));
}

/// The variables: those of the client, and those of the server with what each does.
fn environment(text: &mut String) {
    text.push_str(".SH ENVIRONMENT\n.TP\n.B SERVICE_MANAGEMENT_TOKEN\n");
    add(text, format_args!("{}\n", filled("The token that commands show to a running server.")));
    add(
        text,
        format_args!(
            ".TP\n.B {CA_VARIABLE}\n{}\n",
            filled(
                "A file of authorities, PEM, that commands trust in place of the host's own when the server speaks TLS."
            )
        ),
    );
    text.push_str(".TP\n.B SERVICE_CONFIG\n");
    add(
        text,
        format_args!("{}\n", filled("The configuration file of the server, where --config names none.")),
    );
    paragraph(
        text,
        "The server takes the following variables, and each of them as the key that follows it in the configuration file, \
         a TOML file. A variable goes before the file. A secret or the root access key can also stand in a file that a \
         variable with _FILE at the end of its name names.",
    );
    for key in ALL_KEYS.iter().filter(|key| key.availability == Availability::Built) {
        configuration_key(text, key);
    }
}

fn configuration_key(text: &mut String, key: &Key) {
    let default = match key.default {
        None | Some("") => String::new(),
        Some(default) => format!(" Default: {default}."),
    };
    let line = format!("{}{default}", key.doc);
    add(text, format_args!(".TP\n.BR {} \" ({})\"\n{}\n", escaped(&key.variable()), key.name, filled(&line)));
}

/// Text in lines of roff's source: each sentence begins one, as roff spaces sentences, and none is long.
fn filled(text: &str) -> String {
    /// What lint programs call long.
    const LINE_MAX: usize = 80;
    let mut out = String::new();
    let mut line = String::new();
    // Bold text may go over several lines, so all is escaped before it is cut.
    for word in escaped(text).split_whitespace() {
        if !line.is_empty() && (line.len() + 1 + word.len() > LINE_MAX || line.ends_with('.')) {
            out.push_str(&line);
            out.push('\n');
            line.clear();
        }
        if line.is_empty() && word.starts_with(CONTROL) {
            line.push_str("\\&");
        }
        if !line.is_empty() && line != "\\&" {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + &line
}

/// What makes a line a request when it begins with it.
const CONTROL: [char; 2] = ['.', '\''];

/// Text that roff sets as it stands, the words between backticks in bold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_bold = false;
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\e"),
            // The hyphen of a word would become another character than the one to type.
            '-' => out.push_str("\\-"),
            '"' => out.push_str("\\(dq"),
            '`' => {
                is_bold = !is_bold;
                out.push_str(if is_bold { "\\fB" } else { "\\fR" });
            }
            '\n' => out.push(' '),
            _ if out.is_empty() && CONTROL.contains(&character) => {
                out.push_str("\\&");
                out.push(character);
            }
            ' '..='~' => out.push(character),
            // Not every roff reads UTF-8.
            _ => out.push_str(&format!("\\[u{:04X}]", u32::from(character))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_set_as_it_stands() {
        assert_eq!(escaped(".a-b\\c `x`\n'\"d…"), "\\&.a\\-b\\ec \\fBx\\fR '\\(dqd\\[u2026]");
    }

    #[test]
    fn no_line_of_text_is_long_or_taken_for_a_request() {
        assert_eq!(filled("One. 'Two' .three"), "One.\n\\&'Two' .three");
        let long = filled(&"'word ".repeat(40));
        assert!(long.lines().all(|line| line.len() <= 82 && line.starts_with("\\&'")), "{long}");
        assert_eq!(long.matches("word").count(), 40);
    }

    #[test]
    fn the_page_has_every_command_and_every_key_that_has_an_effect() {
        let (usages, page) = (usages(), page(&usages()));
        for usage in usages.iter().filter(|usage| usage.info.commands.is_empty()) {
            assert!(page.contains(&format!(".SS {}\n", escaped(&usage.words))), "{}", usage.words);
        }
        assert!(page.contains(".BR SERVICE_S3_BIND \" (server.s3_bind)\"\n"), "{page}");
        assert!(page.contains(".B SERVICE_CA_CERTIFICATE\n"), "{page}");
        assert!(!page.contains("SERVICE_WEBHOOKS"), "nothing follows from these in this build");
        assert!(page.contains(".SH EXIT STATUS\n.TP\n.B 0\n"));
    }
}
