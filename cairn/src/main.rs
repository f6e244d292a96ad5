//! The `cairn` binary: the server, and the command-line client of its management plane.
//!
//! Commands are nouns with verbs, or single verbs; each noun has its file. Exit codes: 0 done (for `status`: ready, for
//! `check`, `storage inspect` and `verify`: nothing was found), 1 failed, 2 wrong usage, 3 no server answered.
#![forbid(unsafe_code)]

mod agent;
mod arguments;
mod audit;
mod bucket;
mod check;
mod client;
mod compact;
mod completions;
mod credential;
mod failure;
mod manual;
mod names;
mod output;
mod policy;
mod quantity;
mod quota;
mod serve;
mod service_account;
mod status;
mod storage;
mod table;
mod token;
mod usage;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Cairn;
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
    // A name that is not text would become another one.
    let arguments: Result<Vec<String>, _> = std::env::args_os().skip(1).map(OsString::into_string).collect();
    let arguments =
        arguments.map_err(|wrong| Failure::WrongUsage(format!("{} is not UTF-8", wrong.display())))?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments::parse(&arguments) {
        Err(exit) if exit.status.is_ok() => output::print(&exit.output),
        Err(exit) => {
            let text = exit.output.trim_end();
            Err(Failure::WrongUsage(format!("{text}\n  the same command with --help shows its usage")))
        }
        Ok(Cairn { version: true, .. }) => output::print(concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Cairn { command: Some(command), .. }) => command.run(),
        Ok(Cairn { command: None, .. }) => {
            Err(Failure::WrongUsage("a command is needed; `cairn --help` lists them".to_owned()))
        }
    }
}
