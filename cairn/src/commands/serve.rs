//! `cairn serve`: runs the server.

use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};
use cairn_server::config::Environment;
use cairn_server::{Mode, Ready, ServeOptions};

use crate::failure::{Failure, Outcome};
use crate::output;

/// Run the server until SIGTERM or SIGINT.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "serve", help_triggers("-h", "--help"))]
pub(crate) struct Serve {
    /// development mode: secrets are created on first use and stored in the data folder; listens on loopback addresses only
    #[argh(switch)]
    pub(crate) dev: bool,
    /// with --dev: use TLS, with a certificate for localhost that is created in the data folder
    #[argh(switch)]
    pub(crate) tls: bool,
    /// the configuration file (TOML; default: SERVICE_CONFIG)
    #[argh(option, arg_name = "file")]
    pub(crate) config: Option<String>,
    /// the data folder; overrides SERVICE_DATA_DIR and the file
    #[argh(option, arg_name = "folder")]
    pub(crate) data_dir: Option<String>,
    /// read the files of the web console from this folder at the start, instead of those in the program (for their development)
    #[argh(option, arg_name = "folder")]
    pub(crate) console_dir: Option<String>,
}

impl Serve {
    /// Runs the server until a signal stops it.
    pub(crate) fn run(&self) -> Outcome {
        if self.tls && !self.dev {
            let text =
                "--tls requires --dev; without --dev, configure a certificate (SERVICE_TLS_CERTIFICATE)";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        let options = ServeOptions {
            mode: if self.dev { Mode::Dev } else { Mode::Production },
            config: self.config.as_ref().map(PathBuf::from),
            data_dir: self.data_dir.as_ref().map(PathBuf::from),
            dev_tls: self.tls,
            console_dir: self.console_dir.as_ref().map(PathBuf::from),
        };
        let on_ready = |ready: &Ready| {
            if let Some(banner) = &ready.banner {
                // The secrets of --dev are in its data folder too, so a failure to print them does not end the server.
                if let Err(failure) = output::print(banner) {
                    output::print_error(&format!("cairn: {}\n", failure.message()));
                }
            }
        };
        cairn_server::serve(&options, &Environment::of_process(), on_ready)
            .map_err(|error| error.to_string().into())
    }
}
