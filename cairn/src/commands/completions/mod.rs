//! `cairn completions`: generates shell completion scripts from argh's description of the command line.

mod bash;
mod fish;
mod tables;
mod zsh;

use argh::{ArgsInfo, FromArgs};

use crate::choice::choice;
use crate::commands::usage::Usage;
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

choice! {
    /// The supported shells.
    Shell = "bash" | "zsh" | "fish"
}

impl Completions {
    /// Prints the script.
    pub(crate) fn run(&self, usages: &[Usage]) -> Outcome {
        output::print(&match self.shell.0 {
            "bash" => bash::script(usages),
            "zsh" => zsh::script(usages),
            _ => fish::script(usages),
        })
    }
}
