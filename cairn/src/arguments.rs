//! The command line.

use argh::FromArgs;

/// Cairn: a single-node, S3-compatible object store.
#[derive(FromArgs, Debug)]
pub(crate) struct Cairn {
    /// print the version
    #[argh(switch)]
    pub(crate) version: bool,
    #[argh(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Status(Status),
    Storage(Storage),
    Verify(Verify),
}

/// Run the server until SIGTERM or SIGINT.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "serve")]
pub(crate) struct Serve {
    /// try it out: secrets are made on first use and kept in the data folder; listens on loopback only
    #[argh(switch)]
    pub(crate) dev: bool,
    /// the configuration file (TOML); else SERVICE_CONFIG
    #[argh(option, arg_name = "file")]
    pub(crate) config: Option<String>,
    /// the data folder; goes before SERVICE_DATA_DIR and the file
    #[argh(option, arg_name = "folder")]
    pub(crate) data_dir: Option<String>,
}

/// Ask a server whether it is ready. The exit code is 0 when it is. With SERVICE_MANAGEMENT_TOKEN set, system
/// information is printed too.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "status")]
pub(crate) struct Status {
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "crate::endpoint::DEFAULT_ENDPOINT.to_owned()")]
    pub(crate) endpoint: String,
}

/// Look after the store.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "storage")]
pub(crate) struct Storage {
    #[argh(subcommand)]
    pub(crate) command: StorageCommand,
}

/// What to do with the store.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
pub(crate) enum StorageCommand {
    Compact(Compact),
    Inspect(Inspect),
    Repair(Repair),
}

/// Give the metadata space that deletions freed back to the file system. The server must be stopped; each part of the
/// metadata needs room for a copy of what it holds. Needs no secrets.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "compact")]
pub(crate) struct Compact {
    /// the data folder
    #[argh(option, arg_name = "folder")]
    pub(crate) data_dir: String,
}

/// Have a server compare its metadata with itself. The exit code is 0 when everything was compared and nothing found.
/// Needs SERVICE_MANAGEMENT_TOKEN.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "inspect")]
pub(crate) struct Inspect {
    /// examine at most so many object records (default: 100000)
    #[argh(option, arg_name = "n")]
    pub(crate) maximum_entries: Option<u64>,
    /// print the server's answer as JSON
    #[argh(switch)]
    pub(crate) json: bool,
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "crate::endpoint::DEFAULT_ENDPOINT.to_owned()")]
    pub(crate) endpoint: String,
}

/// Have a server free space that no record owns. Without --apply it says what it would free. Needs
/// SERVICE_MANAGEMENT_TOKEN.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "repair")]
pub(crate) struct Repair {
    /// remove what is found
    #[argh(switch)]
    pub(crate) apply: bool,
    /// examine at most so many object records (default: 100000)
    #[argh(option, arg_name = "n")]
    pub(crate) maximum_entries: Option<u64>,
    /// print the server's answer as JSON
    #[argh(switch)]
    pub(crate) json: bool,
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "crate::endpoint::DEFAULT_ENDPOINT.to_owned()")]
    pub(crate) endpoint: String,
}

/// Have a server read stored data from its device and check it. The exit code is 0 when nothing is damaged. Needs
/// SERVICE_MANAGEMENT_TOKEN.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "verify")]
pub(crate) struct Verify {
    #[argh(subcommand)]
    pub(crate) what: VerifyWhat,
}

/// What to verify.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
pub(crate) enum VerifyWhat {
    Bucket(VerifyBucket),
    Object(VerifyObject),
}

/// Verify every version of every object in a bucket.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "bucket")]
pub(crate) struct VerifyBucket {
    #[argh(positional)]
    pub(crate) bucket: String,
    /// where to write the signed proof (JSON)
    #[argh(option, arg_name = "file")]
    pub(crate) proof: Option<String>,
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "crate::endpoint::DEFAULT_ENDPOINT.to_owned()")]
    pub(crate) endpoint: String,
}

/// Verify one object.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "object")]
pub(crate) struct VerifyObject {
    #[argh(positional)]
    pub(crate) bucket: String,
    #[argh(positional)]
    pub(crate) key: String,
    /// the version; else the current one
    #[argh(option, arg_name = "id")]
    pub(crate) version_id: Option<String>,
    /// where to write the signed proof (JSON)
    #[argh(option, arg_name = "file")]
    pub(crate) proof: Option<String>,
    /// the management plane's address (default: http://127.0.0.1:7601)
    #[argh(option, arg_name = "url", default = "crate::endpoint::DEFAULT_ENDPOINT.to_owned()")]
    pub(crate) endpoint: String,
}

/// What came of the arguments.
pub(crate) enum Parsed {
    Command(Cairn),
    /// Help was asked for.
    Help(String),
    WrongUsage(String),
}

/// Parses the arguments after the program's name.
pub(crate) fn parse(arguments: &[String]) -> Parsed {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match Cairn::from_args(&["cairn"], &arguments) {
        Ok(cairn) => Parsed::Command(cairn),
        Err(exit) if exit.status.is_ok() => Parsed::Help(exit.output),
        Err(exit) => Parsed::WrongUsage(exit.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Parsed {
        parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_stand_with_their_command() {
        let Parsed::Command(Cairn { command: Some(Command::Serve(serve)), .. }) =
            parsed(&["serve", "--dev", "--data-dir", "x"])
        else {
            panic!("serve");
        };
        assert!(serve.dev && serve.config.is_none());
        assert_eq!(serve.data_dir.as_deref(), Some("x"));
        assert!(matches!(parsed(&["--help"]), Parsed::Help(_)));
        for wrong in [&["serve", "--nothing"][..], &["bucket"], &["status", "--endpoint"]] {
            assert!(matches!(parsed(wrong), Parsed::WrongUsage(_)), "{wrong:?}");
        }
    }
}
