//! The command line: which commands there are, and what all of them have in common. The arguments of each stand with it.

use argh::{ArgsInfo, EarlyExit, FromArgs};

use crate::audit::Audit;
use crate::bucket::Bucket;
use crate::check::Check;
use crate::completions::Completions;
use crate::failure::Outcome;
use crate::manual::Manual;
use crate::policy::Policy;
use crate::quota::Quota;
use crate::serve::Serve;
use crate::service_account::ServiceAccount;
use crate::status::Status;
use crate::storage::Storage;
use crate::token::Token;
use crate::verify::Verify;

/// Declares a command of the client: its own arguments, and those that all have.
macro_rules! command {
    ($(#[$attribute:meta])* struct $command:ident($name:tt) { $($fields:tt)* }) => {
        #[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
        $(#[$attribute])*
        // Not the word `help`, which may be the name of something.
        #[argh(subcommand, name = $name, help_triggers("-h", "--help"))]
        pub(crate) struct $command {
            $($fields)*
            /// print the server's answer as JSON
            #[argh(switch)]
            json: bool,
            /// the management plane's address (default: http://127.0.0.1:7601)
            #[argh(option, arg_name = "url", default = "crate::client::Address::default()")]
            endpoint: crate::client::Address,
        }

        impl $command {
            /// The server that is meant.
            fn client(&self) -> crate::client::Client {
                crate::client::Client::new(&self.endpoint, self.json)
            }
        }
    };
}

/// Declares a noun and its commands, each of which has a method `run`.
macro_rules! noun {
    ($(#[$attribute:meta])* struct $noun:ident($name:tt): $choice:ident { $($command:ident),+ $(,)? }) => {
        #[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
        $(#[$attribute])*
        #[argh(subcommand, name = $name)]
        pub(crate) struct $noun {
            #[argh(subcommand)]
            command: $choice,
        }

        #[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
        #[argh(subcommand)]
        enum $choice {
            $($command($command)),+
        }

        impl $noun {
            pub(crate) fn run(&self) -> crate::failure::Outcome {
                match &self.command {
                    $($choice::$command(command) => command.run()),+
                }
            }
        }
    };
}

pub(crate) use {command, noun};

/// Cairn: a single-node, S3-compatible object store.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    note = "All commands but serve, check, storage compact, completions and man talk to
the management plane of a running server, under the token in
SERVICE_MANAGEMENT_TOKEN.",
    error_code(1, "failed, was refused, or found what should not be there"),
    error_code(2, "wrong usage"),
    error_code(3, "no server answered")
)]
pub(crate) struct Cairn {
    /// print the version
    #[argh(switch)]
    pub(crate) version: bool,
    #[argh(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Check(Check),
    Status(Status),
    Bucket(Bucket),
    Quota(Quota),
    ServiceAccount(ServiceAccount),
    Policy(Policy),
    Token(Token),
    Audit(Audit),
    Storage(Storage),
    Verify(Verify),
    Completions(Completions),
    Man(Manual),
}

impl Command {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Serve(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Bucket(noun) => noun.run(),
            Self::Quota(noun) => noun.run(),
            Self::ServiceAccount(noun) => noun.run(),
            Self::Policy(noun) => noun.run(),
            Self::Token(noun) => noun.run(),
            Self::Audit(noun) => noun.run(),
            Self::Storage(noun) => noun.run(),
            Self::Verify(noun) => noun.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}

/// Parses the arguments after the program's name; an early exit is help that was asked for, or wrong usage.
pub(crate) fn parse(arguments: &[&str]) -> Result<Cairn, EarlyExit> {
    let arguments = with_dash_last(arguments);
    Cairn::from_args(&["cairn"], &arguments)
}

/// argh takes a lone dash for an option. Where it names a file, the standard input, it goes behind `--`.
fn with_dash_last<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    if !arguments.starts_with(&["policy", "create"]) || !arguments.contains(&"-") || arguments.contains(&"--")
    {
        return arguments.to_vec();
    }
    let others = arguments.iter().copied().filter(|argument| *argument != "-");
    let dashes = arguments.iter().copied().filter(|argument| *argument == "-");
    others.chain(["--"]).chain(dashes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether arguments are a command; else whether they ask for help.
    fn is_command(arguments: &[&str]) -> Result<bool, bool> {
        parse(arguments).map(|cairn| cairn.command.is_some()).map_err(|exit| exit.status.is_ok())
    }

    #[test]
    fn options_stand_with_their_command_and_wrong_ones_are_refused() {
        let Ok(Cairn { command: Some(Command::Serve(serve)), .. }) =
            parse(&["serve", "--dev", "--data-dir", "x"])
        else {
            panic!("serve");
        };
        assert!(serve.dev && serve.config.is_none());
        assert_eq!(serve.data_dir.as_deref(), Some("x"));
        for help in [&["--help"][..], &["bucket", "help"], &["bucket", "show", "b", "-h"]] {
            assert_eq!(is_command(help), Err(true), "{help:?}");
        }
        for right in [
            &["bucket", "show", "help"][..],
            &["policy", "create", "-", "--json"],
            &["policy", "create", "--", "-"],
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

    /// Each `cairn …` line of the examples in docs/cli.md.
    #[test]
    fn every_example_of_the_documentation_is_right_usage() {
        let documentation = include_str!("../../docs/cli.md");
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
