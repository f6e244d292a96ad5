//! `cairn serve`.

use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};
use cairn_server::config::Environment;
use cairn_server::{Mode, Ready, ServeOptions};

use crate::failure::{Failure, Outcome};
use crate::output;

/// Run the server until SIGTERM or SIGINT.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "serve")]
pub(crate) struct Serve {
    /// try it out: secrets are made on first use and kept in the data folder; listens on loopback only
    #[argh(switch)]
    pub(crate) dev: bool,
    /// with --dev: speak TLS, with a certificate for localhost that is made and kept in the data folder
    #[argh(switch)]
    pub(crate) tls: bool,
    /// the configuration file (TOML); else SERVICE_CONFIG
    #[argh(option, arg_name = "file")]
    pub(crate) config: Option<String>,
    /// the data folder; goes before SERVICE_DATA_DIR and the file
    #[argh(option, arg_name = "folder")]
    pub(crate) data_dir: Option<String>,
}

impl Serve {
    /// Runs the server until it is told to end.
    pub(crate) fn run(&self) -> Outcome {
        if self.tls && !self.dev {
            let text = "--tls goes with --dev; else the certificate is configured (SERVICE_TLS_CERTIFICATE)";
            return Err(Failure::WrongUsage(text.to_owned()));
        }
        let options = ServeOptions {
            mode: if self.dev { Mode::Dev } else { Mode::Production },
            config: self.config.as_ref().map(PathBuf::from),
            data_dir: self.data_dir.as_ref().map(PathBuf::from),
            dev_tls: self.tls,
        };
        let on_ready = |ready: &Ready| {
            if let Some(guide) = &ready.guide {
                // The secrets of a trial are in its data folder too: a server need not end for want of a reader.
                if let Err(failure) = output::print(guide) {
                    output::print_error(&format!("cairn: {}\n", failure.message()));
                }
            }
        };
        cairn_server::serve(&options, &Environment::of_process(), on_ready)
            .map_err(|error| error.to_string().into())
    }
}
