//! The command line: one file per command, or per noun with its verbs.
//!
//! Each file declares the arguments of its commands and runs them. This file lists them all, and parses a command line.

mod app;
mod apply;
mod arguments;
mod audit;
mod backup;
mod bucket;
mod check;
mod completions;
mod config;
mod data_folder;
mod deletion;
mod doctor;
mod event;
mod export;
mod history;
mod import;
mod lifecycle;
mod link;
mod lock_mode;
mod macros;
mod manual;
mod object;
mod parallel;
mod policy;
#[cfg(test)]
mod printed;
mod public;
mod quota;
mod refused;
mod remote;
mod resources;
mod salvage;
mod serve;
mod service_account;
mod signals;
mod statement;
mod status;
mod storage;
mod token;
mod usage;
mod verify;
mod webhook;

use argh::{ArgsInfo, EarlyExit, FromArgs};

use crate::failure::Outcome;
use app::App;
use apply::Apply;
use arguments::{Requested, normalized, requested, with_dash_last};
use audit::Audit;
use backup::Backup;
use bucket::Bucket;
use check::Check;
use completions::Completions;
use config::Config;
use doctor::Doctor;
use event::Event;
use export::Export;
use history::History;
use import::Import;
use lifecycle::Lifecycle;
use link::{Embed, Share};
use manual::Manual;
use object::Object;
use policy::Policy;
use public::Public;
use quota::Quota;
use refused::{Explain, Refused};
use salvage::Salvage;
use serve::Serve;
use service_account::ServiceAccount;
use status::Status;
use storage::Storage;
use token::Token;
use usage::{HELP, PROGRAM, usages};
use verify::Verify;
use webhook::Webhook;

/// Cairn: a single-node, S3-compatible object store.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    help_triggers("-h", "--help", "help"),
    note = "All commands except serve, check, config, doctor, storage compact --data-dir,
storage upgrade --data-dir, storage discard-log, backup list, backup verify, backup restore,
salvage, verify proof, completions and man use the management plane of a running server,
with the token in SERVICE_MANAGEMENT_TOKEN.",
    error_code(1, "failed, was refused, or found problems"),
    error_code(2, "wrong usage"),
    error_code(3, "no response from a server"),
    error_code(130, "import, export or backup was ended by a signal")
)]
pub(crate) struct Cairn {
    /// print the version
    #[argh(switch, short = 'V')]
    pub(crate) version: bool,
    #[argh(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Declares the commands, and after the semicolon those that print what there is.
macro_rules! commands {
    ($($command:ident),+; $($listing:ident),+ $(,)?) => {
        /// The commands.
        #[derive(FromArgs, ArgsInfo, Debug)]
        #[argh(subcommand)]
        pub(crate) enum Command {
            $($command($command),)+
            $($listing($listing),)+
        }

        impl Command {
            pub(crate) fn run(&self) -> Outcome {
                match self {
                    $(Self::$command(command) => command.run(),)+
                    $(Self::$listing(command) => command.run(&usages(Cairn::get_args_info())),)+
                }
            }
        }
    };
}

// In the order of the help.
commands! {
    Serve, Check, Config, Doctor, Status, History, Import, Export, Bucket, Object, Public, Quota, Lifecycle,
    ServiceAccount, Policy, App, Token, Audit, Refused, Explain, Event, Webhook, Apply, Share, Embed, Storage,
    Backup, Salvage, Verify;
    Completions, Manual,
}

/// Parses the arguments after the program's name. An early exit is a request for help, or wrong usage.
pub(crate) fn parse(arguments: &[&str]) -> Result<Cairn, EarlyExit> {
    let program = Cairn::get_args_info();
    let arguments = &backup::with_run(arguments);
    let normalized = normalized(program.clone(), arguments);
    let arguments = normalized.as_slice();
    let arguments = match requested(program.clone(), arguments) {
        Err(output) => return Err(EarlyExit { output, status: Err(()) }),
        Ok(Requested::Version) => return Ok(Cairn { version: true, command: None }),
        Ok(Requested::Help(words)) => words.into_iter().chain([HELP]).collect(),
        Ok(Requested::Command) => with_dash_last(program, &link::with_password_prompt(arguments)),
    };
    Cairn::from_args(&[PROGRAM], &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether arguments are a command; `Err(true)` if they request help.
    fn is_command(arguments: &[&str]) -> Result<bool, bool> {
        parse(arguments).map(|cairn| cairn.command.is_some()).map_err(|exit| exit.status.is_ok())
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let Ok(Cairn { command: Some(Command::Serve(serve)), .. }) =
            parse(&["serve", "--dev", "--data-dir", "x"])
        else {
            panic!("serve");
        };
        assert!(serve.dev && serve.config.is_none());
        assert_eq!(serve.data_dir.as_deref(), Some("x"));
        for help in [
            &["--help"][..],
            &["bucket", "help"],
            &["bucket", "show", "b", "-h"],
            &["help", "status"],
            &["serve", "help"],
        ] {
            assert_eq!(is_command(help), Err(true), "{help:?}");
        }
        for right in [
            &["bucket", "show", "--", "help"][..],
            &["policy", "create", "-", "--json"],
            &["policy", "create", "--", "-"],
            &["object", "put", "-", "b/k", "--json"],
            &["object", "put", "-", "--", "b/k"],
            &["verify", "proof", "-"],
            &["status", "--json", "--endpoint", "http://[::1]:1/"],
            &["status", "--endpoint", "https://127.0.0.1:1"],
        ] {
            assert_eq!(is_command(right), Ok(true), "{right:?}");
        }
        for wrong in [
            &["serve", "--nothing"][..],
            &["bucket"],
            &["bucket", "create"],
            &["bucket", "create", "a", "b"],
            &["bucket", "versioning", "a", "on"],
            &["quota", "set", "a", "--bytes", "much"],
            &["policy", "create", "-", "-"],
            &["token", "create", "a"],
            &["token", "create", "a", "--role", "root"],
            &["service-account", "temporary-credential", "a"],
            &["service-account", "temporary-credential", "a", "--expires-in", "soon"],
            &["status", "--endpoint"],
            &["status", "--endpoint", "127.0.0.1:1"],
            &["status", "--endpoint", "http://127.0.0.1:99999"],
            &["status", "--endpoint", "http://127.0.0.1:1/path"],
            &["status", "--endpoint", "http://name:word@127.0.0.1:1"],
        ] {
            assert_eq!(is_command(wrong), Err(false), "{wrong:?}");
        }
    }

    /// Checks each `cairn …` line of the examples in docs/cli.md.
    #[test]
    fn every_example_in_the_documentation_parses() {
        let documentation = include_str!("../../../docs/cli.md");
        let examples = documentation.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
        let mut count = 0;
        for line in examples.flat_map(str::lines).filter_map(|line| line.strip_prefix("cairn ")) {
            let line = line.split(['<', '>']).next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(is_command(&words), Ok(true), "{line}");
            count += 1;
        }
        assert!(count > 30, "{count} examples");
    }
}
