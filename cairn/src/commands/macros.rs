//! Macros that declare commands and the nouns that group them.

/// Declares a command of the client: its own arguments, and those that all commands have.
macro_rules! command {
    ($(#[$attribute:meta])* struct $command:ident($name:tt) { $($fields:tt)* }) => {
        #[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
        $(#[$attribute])*
        // Not the word `help`, which may be a name.
        #[argh(subcommand, name = $name, help_triggers("-h", "--help"))]
        pub(crate) struct $command {
            $($fields)*
            /// print the server's response as JSON
            #[argh(switch)]
            json: bool,
            /// the management plane's address (default: SERVICE_MANAGEMENT_ENDPOINT, or http://127.0.0.1:7601)
            #[argh(option, arg_name = "url")]
            endpoint: Option<crate::client::Address>,
        }

        impl $command {
            /// Returns a client for the chosen server.
            fn client(&self) -> Result<crate::client::Client, crate::failure::Failure> {
                crate::client::Client::new(self.endpoint.as_ref(), self.json)
            }
        }
    };
}

/// Declares a noun and its commands, each of which has a method `run`.
macro_rules! noun {
    ($(#[$attribute:meta])* struct $noun:ident($name:tt): $choice:ident { $($command:ident),+ $(,)? }) => {
        #[derive(argh::FromArgs, argh::ArgsInfo, Debug)]
        $(#[$attribute])*
        #[argh(subcommand, name = $name, help_triggers("-h", "--help"))]
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
