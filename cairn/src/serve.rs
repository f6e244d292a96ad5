//! `cairn serve`.

use std::path::PathBuf;

use cairn_server::config::Environment;
use cairn_server::{Mode, Ready, ServeOptions};

use crate::arguments::Serve;
use crate::output;

/// Runs the server until it is told to end.
pub(crate) fn run(command: &Serve) -> Result<(), String> {
    let options = ServeOptions {
        mode: if command.dev { Mode::Dev } else { Mode::Production },
        config: command.config.as_ref().map(PathBuf::from),
        data_dir: command.data_dir.as_ref().map(PathBuf::from),
    };
    let on_ready = |ready: &Ready| {
        if let Some(guide) = &ready.guide {
            output::print(guide);
        }
    };
    cairn_server::serve(&options, &Environment::of_process(), on_ready).map_err(|error| error.to_string())
}
