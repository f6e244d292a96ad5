//! `cairn completions`: generates shell completion scripts from argh's description of the command line.

mod bash;
mod fish;
mod tables;
mod zsh;

use std::str::FromStr;

use argh::{ArgsInfo, FromArgs};

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
    pub(crate) fn run(&self, usages: &[Usage]) -> Outcome {
        output::print(&match self.shell {
            Shell::Bash => bash::script(usages),
            Shell::Zsh => zsh::script(usages),
            Shell::Fish => fish::script(usages),
        })
    }
}
