//! The `cairn` binary: the server, and the command-line client of its management plane.
//!
//! Commands are nouns with verbs, or single verbs; each has a file in `commands`. Exit codes: 0 success (for `status`: ready;
//! for `check`, `storage inspect` and `verify`: no problems found), 1 failure, 2 wrong usage, 3 no response from a server,
//! 130 ended by a signal after it has written down what it did.
#![forbid(unsafe_code)]

mod choice;
mod client;
mod commands;
mod doctor;
mod document;
mod environment;
mod failure;
mod moment;
mod output;
mod quantity;
mod s3;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use commands::Cairn;
use failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::print_error(&format!("cairn: {}\n", failure.message().trim_end()));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Outcome {
    // A lossy conversion would change a name.
    let arguments: Result<Vec<String>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let arguments =
        arguments.map_err(|wrong| Failure::WrongUsage(format!("{} is not UTF-8", wrong.display())))?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match commands::parse(&arguments) {
        Err(exit) if exit.status.is_ok() => output::print(&exit.output),
        Err(exit) => {
            let text = exit.output.trim_end();
            Err(Failure::WrongUsage(format!("{text}\n  run the same command with --help to see its usage")))
        }
        Ok(Cairn { version: true, .. }) => output::print(concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Cairn { command: Some(command), .. }) => command.run(),
        Ok(Cairn { command: None, .. }) => {
            Err(Failure::WrongUsage("a command is required; `cairn --help` lists them".to_owned()))
        }
    }
}
