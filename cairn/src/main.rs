//! The `cairn` binary: the server, and the command-line client of its management plane.
//!
//! Commands are nouns or single verbs, one file each. Exit codes: 0 done (for `status`: ready, for
//! `storage inspect` and `verify`: nothing was found), 1 failed, 2 wrong usage.
#![forbid(unsafe_code)]

mod arguments;
mod compact;
mod endpoint;
mod output;
mod serve;
mod status;
mod storage;
mod verify;

use std::process::ExitCode;

use arguments::{Cairn, Command, Parsed, Storage, StorageCommand};

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let result = match arguments::parse(&arguments) {
        Parsed::Help(text) => {
            output::print(&text);
            return ExitCode::SUCCESS;
        }
        Parsed::WrongUsage(text) => {
            output::print_error(&text);
            return ExitCode::from(WRONG_USAGE);
        }
        Parsed::Command(Cairn { version: true, .. }) => {
            output::print(concat!("cairn ", env!("CARGO_PKG_VERSION"), "\n"));
            return ExitCode::SUCCESS;
        }
        Parsed::Command(Cairn { command: Some(Command::Serve(command)), .. }) => serve::run(&command),
        Parsed::Command(Cairn { command: Some(Command::Status(command)), .. }) => status::run(&command),
        Parsed::Command(Cairn { command: Some(Command::Storage(Storage { command })), .. }) => {
            match command {
                StorageCommand::Compact(command) => compact::run(&command),
                StorageCommand::Inspect(command) => storage::inspect(&command),
                StorageCommand::Repair(command) => storage::repair(&command),
            }
        }
        Parsed::Command(Cairn { command: Some(Command::Verify(command)), .. }) => verify::run(&command),
        Parsed::Command(Cairn { command: None, .. }) => {
            output::print_error("a command is needed; `cairn --help` lists them\n");
            return ExitCode::from(WRONG_USAGE);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            output::print_error(&format!("cairn: {message}\n"));
            ExitCode::from(FAILED)
        }
    }
}
