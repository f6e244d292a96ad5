//! The checks in their order: the connection, the clock, the credentials, the mode, the profile, the round trip.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cairn_http1::encode_strict;
use serde_json::Value;

use super::check::{Checked, Verdict, count};
use super::clients::{Facts, Mode, REGION};
use super::connection::{Answer, Call, Connection, SKEW_SECONDS_MAX};
use super::failed::Failed;
use super::profile::Profile;
use super::profile_checks;
use super::trip::{TEMPORARY_PREFIX, Trip};
use crate::client::{Client, Request, agent_trusting};
use crate::failure::Failure;
use crate::moment::now_millis;
use crate::s3::endpoint::Endpoint;

/// The address of a server on this host.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7600";
/// A difference of the clocks that is worth a note, in seconds.
const SKEW_SECONDS_NOTED: u64 = 60;
/// A valid name of a bucket, which need not exist.
const PROBED_BUCKET: &str = "cairn-doctor-mode";
/// Most refusals whose explanation is asked for.
const EXPLAINED_MAX: usize = 5;

/// The server to examine, and how.
pub(crate) struct Options<'a> {
    pub(crate) endpoint: Option<&'a Endpoint>,
    pub(crate) bucket: Option<&'a str>,
    pub(crate) ca_certificate: Option<&'a str>,
    /// Whether a missing access key is a failure.
    pub(crate) needs_credentials: bool,
    pub(crate) stop: Arc<AtomicBool>,
}

/// An examination of a server.
pub(crate) struct Examination<'p> {
    profile: &'p Profile,
    connection: Connection,
    /// Answers questions about the server, if there is a token.
    management: Option<Client>,
    mode: Option<Mode>,
    needs_credentials: bool,
    bucket: Option<String>,
    /// The checks so far.
    pub(crate) checks: Vec<Checked>,
}

impl<'p> Examination<'p> {
    /// Prepares the examination. Nothing is sent.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub(crate) fn new(
        profile: &'p Profile,
        options: Options<'_>,
        management: Option<Client>,
    ) -> Result<Self, Failure> {
        let endpoint = match (options.endpoint, profile.endpoint()) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(found)) => {
                let wrong = |why| Failure::WrongUsage(format!("{}: {}: {why}", found.place, found.value));
                found.value.parse().map_err(wrong)?
            }
            (None, None) => DEFAULT_ENDPOINT.parse().expect("an address"),
        };
        let region = profile.setting(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region");
        let authority = options
            .ca_certificate
            .map(|path| ("--ca-certificate".to_owned(), path.to_owned()))
            .or_else(|| profile.variable("SERVICE_CA_CERTIFICATE").map(|found| (found.place, found.value)))
            .or_else(|| {
                profile.setting(&["AWS_CA_BUNDLE"], "ca_bundle").map(|found| (found.place, found.value))
            })
            .map(|(place, path)| {
                (place, std::path::absolute(&path).unwrap_or_else(|_| PathBuf::from(&path)))
            });
        let agent = match &authority {
            Some((place, path)) if endpoint.has_tls() => agent_trusting(Some((place, path)))?,
            _ => agent_trusting(None)?,
        };
        let authority = authority.map(|(_, path)| path).filter(|_| endpoint.has_tls());
        let region = region.map_or_else(|| REGION.to_owned(), |found| found.value);
        let connection =
            Connection::new(agent, endpoint, region, profile.credentials(), authority, options.stop);
        Ok(Self {
            profile,
            connection,
            management: management.filter(Client::has_token),
            mode: None,
            needs_credentials: options.needs_credentials,
            bucket: options.bucket.map(str::to_owned),
            checks: Vec::new(),
        })
    }

    /// Returns the facts that the settings of clients depend on.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            endpoint: &self.connection.endpoint,
            mode: self.mode,
            region: REGION,
            authority: self.connection.authority.clone(),
            application: None,
        }
    }

    /// Checks the connection, the clock, the credentials and the mode. Returns whether objects can be tried.
    pub(crate) fn begin(&mut self) -> bool {
        let Some(answer) = self.reach() else {
            self.ask_mode();
            return false;
        };
        self.compare_clocks(&answer);
        let is_known = self.check_credentials();
        self.ask_mode();
        if self.mode.is_none() && is_known {
            self.probe_mode();
        }
        self.checks.push(match self.mode {
            Some(mode) => Checked::ok("mode", format!("s3.compatibility is {}", mode.name())),
            None => Checked::new("mode", Verdict::Note, "it is not known whether s3.compatibility is strict or extended")
                .fix("The settings are those for strict, which work in both. Access keys, or SERVICE_MANAGEMENT_TOKEN, let the doctor find out."),
        });
        is_known
    }

    /// Checks the settings of the profile.
    pub(crate) fn check_profile(&mut self) {
        let has_virtual_hosts = self
            .checks
            .iter()
            .any(|checked| checked.name == "virtual host" && checked.verdict == Verdict::Ok);
        let found =
            profile_checks::checks(self.profile, &self.connection.endpoint, self.mode, has_virtual_hosts);
        self.checks.extend(found);
    }

    /// Tries objects.
    pub(crate) fn try_objects(&mut self) {
        let done = Trip::run(&self.connection, self.mode, self.bucket.as_deref());
        self.checks.extend(done);
    }

    /// Adds what the server's administrator is told about the refusals.
    pub(crate) fn explain(&mut self) {
        let Some(management) = &self.management else { return };
        let refused = self.checks.iter_mut().filter(|checked| checked.verdict == Verdict::Failed);
        for checked in refused.filter(|checked| checked.request_id.is_some()).take(EXPLAINED_MAX) {
            let id = checked.request_id.as_deref().unwrap_or_default();
            let path = format!("/api/v1/refused-requests/{}", encode_strict(id));
            let Ok(explained) = management.call(&Request::get(path)) else { continue };
            // The temporary bucket gets another name each time.
            let advice = explained["advice"].as_str().filter(|advice| !advice.contains(TEMPORARY_PREFIX));
            if let Some(advice) = advice {
                checked.fix = Some(advice.to_owned());
            }
        }
    }

    /// The number of checks that failed.
    pub(crate) fn failures(&self) -> usize {
        count(&self.checks, Verdict::Failed)
    }

    /// Sends a request without credentials, which an S3 server refuses.
    fn reach(&mut self) -> Option<Answer> {
        const NAME: &str = "connection";
        let url = self.connection.endpoint.url();
        let answer = match self.connection.send_unsigned("GET", "/") {
            Err(no_answer) => {
                self.checks.push(Failed::no_answer(&format!("a request to {url}"), no_answer).named(NAME));
                return None;
            }
            Ok(answer) => answer,
        };
        if answer.status == 400 && !self.connection.endpoint.has_tls() && answer.text().contains("TLS") {
            let failed = Checked::failed(NAME, format!("{url} speaks TLS only"));
            self.checks.push(failed.fix("Use the same address with https."));
            return None;
        }
        if answer.request_id().is_some() {
            let how = if self.connection.endpoint.has_tls() { "over TLS" } else { "over plain HTTP" };
            self.checks.push(Checked::ok(NAME, format!("{url} is an S3 server, {how}")));
            return Some(answer);
        }
        let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let is_management = body.is_some_and(|body| body["error"]["code"].is_string())
            || answer
                .header("location")
                .is_some_and(|place| place.starts_with("/api") || place.starts_with("/console"));
        let failed = if is_management {
            Checked::failed(NAME, format!("{url} is the management plane of a server, not its S3 plane"))
                .fix("Use the address of the S3 plane: port 7600, unless server.s3_bind sets another.")
        } else {
            Checked::failed(
                NAME,
                format!("{url} answers HTTP {}, but not as an S3 server does", answer.status),
            )
            .fix(
                "Check address and port. If a proxy is in between, it must pass requests on to the S3 plane.",
            )
        };
        self.checks.push(failed);
        None
    }

    /// Compares the clocks, because signatures are valid for a quarter of an hour.
    fn compare_clocks(&mut self, answer: &Answer) {
        const NAME: &str = "clock";
        let Some(server) = answer.date() else { return };
        let own = now_millis() / 1000;
        let (seconds, direction) = (own.abs_diff(server), if own > server { "ahead of" } else { "behind" });
        let message = format!("this computer's clock is {seconds} s {direction} the server's");
        self.checks.push(if seconds > SKEW_SECONDS_MAX {
            // Everything else can be tried nevertheless.
            let ahead = i64::try_from(server * 1000).unwrap_or(i64::MAX) - i64::try_from(own * 1000).unwrap_or(0);
            self.connection.clock_ahead.set(ahead);
            Checked::failed(NAME, format!("{message}; the server refuses signatures with a difference of more than 15 minutes"))
                .fix("Set the clock of this computer or of the server, by NTP for example. The checks below sign with the server's time.")
        } else if seconds > SKEW_SECONDS_NOTED {
            Checked::new(NAME, Verdict::Note, message).fix("Set the clocks by NTP: from 15 minutes on, requests are refused.")
        } else {
            Checked::ok(NAME, "this computer and the server have the same time")
        });
    }

    /// Lists the buckets, which every valid credential may.
    fn check_credentials(&mut self) -> bool {
        const NAME: &str = "credentials";
        let Some(credentials) = &self.connection.credentials else {
            let verdict = if self.needs_credentials { Verdict::Failed } else { Verdict::Skipped };
            let message = if self.profile.is_named {
                format!("the profile {} has no access key", self.profile.name)
            } else {
                "no access key was found".to_owned()
            };
            let fix = format!(
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write aws_access_key_id and aws_secret_access_key to {}.",
                self.profile.credentials_file.display()
            );
            self.checks.push(Checked::new(NAME, verdict, message).fix(fix));
            return false;
        };
        let access_key = credentials.access_key.clone();
        let what = format!("a request signed with the access key {access_key}");
        let failed = match self.connection.call(&Call::new("GET", "", "")) {
            Err(no_answer) => Failed::no_answer(&what, no_answer),
            Ok(answer) if answer.is_success() => {
                self.checks
                    .push(Checked::ok(NAME, format!("the access key {access_key} and its secret are valid")));
                return true;
            }
            Ok(answer) => Failed::refused(&what, &answer, self.mode),
        };
        self.checks.push(failed.named(NAME));
        false
    }

    /// Asks the management plane for the mode.
    fn ask_mode(&mut self) {
        let Some(management) = &self.management else { return };
        if let Ok(info) = management.call(&Request::get("/api/v1/system/info")) {
            self.mode = info["s3_compatibility"].as_str().and_then(Mode::parse);
        }
    }

    /// Asks for a list in its first version, which only the mode `extended` knows. It changes nothing.
    fn probe_mode(&mut self) {
        let bucket = self.bucket.as_deref().unwrap_or(PROBED_BUCKET);
        let query = [("max-keys", "1")];
        self.mode = match self.connection.call(&Call::new("GET", bucket, "").query(&query)) {
            Ok(answer) if answer.status == 501 => Some(Mode::Strict),
            Ok(answer) if answer.is_success() || matches!(answer.status, 403 | 404) => Some(Mode::Extended),
            _ => None,
        };
    }
}
