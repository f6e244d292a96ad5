//! `cairn completions`: generates shell completion scripts from argh's description of the command line.

mod bash;
mod fish;
mod zsh;

use std::str::FromStr;

use argh::{ArgsInfo, FromArgs};

use crate::commands::usage::{Takes, Usage, takes, usages};
use crate::failure::Outcome;
use crate::output;

/// Print a completion script for a shell.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "completions", help_triggers("-h", "--help"))]
pub(crate) struct Completions {
    /// the shell
    #[argh(positional, arg_name = "bash|zsh|fish")]
    shell: Shell,
}

/// The supported shells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl FromStr for Shell {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "bash" => Ok(Self::Bash),
            "zsh" => Ok(Self::Zsh),
            "fish" => Ok(Self::Fish),
            _ => Err("expected bash, zsh or fish"),
        }
    }
}

impl Completions {
    /// Prints the script.
    pub(crate) fn run(&self) -> Outcome {
        let usages = usages();
        output::print(&match self.shell {
            Shell::Bash => bash::script(&usages),
            Shell::Zsh => zsh::script(&usages),
            Shell::Fish => fish::script(&usages),
        })
    }
}

/// Returns the words of all commands, each in single quotes. The scripts compare the words of a line with them.
fn commands(usages: &[Usage]) -> Vec<String> {
    usages.iter().skip(1).map(|usage| format!("'{}'", usage.words)).collect()
}

/// Returns the options of all commands that take `what`, each after the words of its command and in single quotes.
fn options_that_take(usages: &[Usage], what: Takes) -> Vec<String> {
    let of = |usage: &Usage| {
        let options = usage.options().filter(|option| takes(option) == what);
        options.map(|option| format!("'{} {}'", usage.words, option.long)).collect::<Vec<_>>()
    };
    usages.iter().flat_map(of).collect()
}

/// Returns the options of all commands that take a value.
fn options_with_value(usages: &[Usage]) -> Vec<String> {
    [Takes::File, Takes::Folder, Takes::Other]
        .iter()
        .flat_map(|what| options_that_take(usages, *what))
        .collect()
}

/// Returns the commands whose positional argument is a file.
fn commands_with_file(usages: &[Usage]) -> Vec<String> {
    let with_file = usages.iter().filter(|usage| usage.positional() == Takes::File);
    with_file.map(|usage| format!("'{}'", usage.words)).collect()
}
