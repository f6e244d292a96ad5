//! Macros that declare commands, nouns, and what all resources have.

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

/// Declares commands of a resource: the description of the arguments that name one, and each command's description and verb.
macro_rules! verbs {
    ($resource:ident by $names:tt $(#[$about:meta] $verb:ident),+ $(,)?) => {
        $(crate::commands::macros::verb! { $resource $names #[$about] $verb })+
    };
}

/// Declares one command of a resource.
macro_rules! verb {
    ($resource:ident $names:tt #[$about:meta] list) => {
        crate::commands::macros::command! {
            #[$about]
            struct List("list") {}
        }

        impl List {
            fn run(&self) -> crate::failure::Outcome {
                $resource.list(&self.client()?)
            }
        }
    };
    ($resource:ident $names:tt #[$about:meta] show) => {
        crate::commands::macros::verb! { $resource $names #[$about] Show("show") show }
    };
    ($resource:ident $names:tt #[$about:meta] enable) => {
        crate::commands::macros::verb! { $resource $names #[$about] Enable("enable") enable }
    };
    ($resource:ident $names:tt #[$about:meta] disable) => {
        crate::commands::macros::verb! { $resource $names #[$about] Disable("disable") disable }
    };
    ($resource:ident $names:tt #[$about:meta] delete) => {
        crate::commands::macros::verb! { $resource $names #[$about] Delete("delete") delete }
    };
    ($resource:ident $names:tt #[$about:meta] url) => {
        crate::commands::macros::verb! { $resource $names #[$about] Url("url") url }
    };
    ($resource:ident $names:tt #[$about:meta] revoke) => {
        crate::commands::macros::verb! { $resource $names #[$about] Revoke("revoke") revoke }
    };
    ($resource:ident { $(#[$help:meta] $name:ident),+ } #[$about:meta] $command:ident($word:tt) $method:ident) => {
        crate::commands::macros::command! {
            #[$about]
            struct $command($word) {
                $(
                    #[$help]
                    #[argh(positional)]
                    $name: String,
                )+
            }
        }

        impl $command {
            fn run(&self) -> crate::failure::Outcome {
                $resource.$method(&self.client()?, &[$(&self.$name),+])
            }
        }
    };
}

pub(crate) use {command, noun, verb, verbs};
