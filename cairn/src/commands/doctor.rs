//! `cairn doctor`: prints the settings of a client for a server, and tries whether S3 works.

use std::env;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use argh::{ArgsInfo, FromArgs};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::client::Client;
use crate::doctor::{Examination, Options, Profile, S3Client, Verdict, as_json, count, lines};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::counted;
use crate::s3::endpoint::Endpoint;
use crate::terminal;

/// Print the settings that an S3 client needs for a server, check an AWS profile, and try everything with real requests: small
/// and large objects, ranges, lists, copies, presigned URLs, deletes. What is made is removed. The exit code is 0 if nothing
/// failed.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "doctor", help_triggers("-h", "--help"))]
pub(crate) struct Doctor {
    /// a client whose settings are printed, for example aws-cli, boto3, go, rclone or restic
    #[argh(positional, arg_name = "client")]
    client: Option<String>,
    /// check this profile of ~/.aws, and use its access key
    #[argh(option, arg_name = "name")]
    profile: Option<String>,
    /// the S3 plane's address (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint_url, or
    /// http://127.0.0.1:7600)
    #[argh(option, arg_name = "url")]
    endpoint: Option<Endpoint>,
    /// try objects in this bucket, below cairn-doctor-…/; without it, in a temporary bucket
    #[argh(option, arg_name = "name")]
    bucket: Option<String>,
    /// the PEM file of the certificate authority that signed the server's certificate (default: SERVICE_CA_CERTIFICATE,
    /// AWS_CA_BUNDLE, or the profile's ca_bundle)
    #[argh(option, arg_name = "file")]
    ca_certificate: Option<String>,
    /// write no objects: print settings, and check the connection, the credentials and the profile
    #[argh(switch)]
    no_round_trip: bool,
    /// print the results as JSON
    #[argh(switch)]
    json: bool,
}

impl Doctor {
    /// Prints settings and checks. Fails if a check fails.
    pub(crate) fn run(&self) -> Outcome {
        let client = self.client.as_deref().map(S3Client::find).transpose().map_err(Failure::WrongUsage)?;
        if let Some(bucket) = &self.bucket
            && !is_bucket_name(bucket)
        {
            return Err(Failure::WrongUsage(format!("--bucket: {bucket:?} is not the name of a bucket")));
        }
        let profile = Profile::read(self.profile.as_deref(), |name| env::var_os(name))?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second signal ends the program at once. Registered first, so that the first one finds the flag clear.
            let registered = signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
            registered.map_err(|error| format!("signals cannot be handled: {error}"))?;
        }
        let options = Options {
            endpoint: self.endpoint.as_ref(),
            bucket: self.bucket.as_deref(),
            ca_certificate: self.ca_certificate.as_deref(),
            needs_credentials: client.is_none() || self.profile.is_some(),
            stop,
        };
        let mut examination = Examination::new(&profile, options, Client::new(None, true).ok())?;
        let can_try = examination.begin();
        if let Some(client) = client
            && !self.json
        {
            output::print(&client.text(&examination.facts()))?;
        }
        if can_try && !self.no_round_trip {
            examination.try_objects();
        }
        if self.profile.is_some() || (client.is_none() && profile.exists()) {
            examination.check_profile();
        }
        examination.explain();
        let checks = &examination.checks;
        if self.json {
            let facts = examination.facts();
            let body = json!({
                "endpoint": facts.endpoint.url(),
                "mode": facts.mode.map(crate::doctor::Mode::name),
                "client": client.map(|client| client.json(&facts)),
                "profile": self.profile,
                "checks": as_json(checks),
                "failed": examination.failures(),
                "notes": count(checks, Verdict::Note),
            });
            output::print(&terminal::json(&body))?;
        } else {
            output::print(&lines(checks))?;
        }
        match examination.failures() {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} failed", counted(checks.len() as u64, "check")).into()),
        }
    }
}

/// Returns whether S3 allows a bucket of this name.
pub(super) fn is_bucket_name(name: &str) -> bool {
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
}
