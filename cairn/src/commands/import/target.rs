//! The server that objects are imported into, through its management plane.

use std::collections::HashMap;
use std::io::Read;

use cairn_api::{
    BeginImport, BegunImport, Bucket, ChangeImported, CreateBucket, ImportOutcome, ImportedPart,
    ImportedUpload, ImportedVersion, ImportedVersions, ObjectRecord, ObjectVersion, Retention, Session,
    SetRetention, SetVersioning, Tag, VersioningState,
};
use cairn_http1::{encode_path, encode_strict, iso8601_millis, parse_rfc3339_millis};
use cairn_sync::Mutex;
use serde_json::Value;

use super::buckets::SourceBucket;
use super::watch::Watch;
use crate::client::pages::{Pages, VERSIONS};
use crate::client::{Client, Query, Request, Response, read, with_query};
use crate::commands::remote::{Entry, Lock, Remote, Settings};
use crate::failure::{Failure, Outcome};

/// The number of attempts at a request that fails for a reason that may pass: the time of a restart.
const ATTEMPTS: u32 = 8;
/// The role that may import.
const IMPORTING_ROLE: &str = "system_admin";

/// The error of a version that was not imported, or of the whole command.
#[derive(Debug)]
pub(super) enum Refused {
    /// The server refuses this version. Others may be accepted.
    Version { code: String, message: String },
    /// The command cannot go on.
    Command(Failure),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Command(failure)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Version { code, message } => Self::Failed(format!("{code}: {message}")),
            Refused::Command(failure) => failure,
        }
    }
}

/// The management plane, and the run of each bucket.
pub(super) struct Target<'a> {
    pub(super) client: &'a Client,
    source: &'a Remote,
    events: bool,
    runs: Mutex<HashMap<String, String>>,
    pub(super) watch: Watch,
}

/// The body of a request.
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    Stream(&'a mut dyn Read, u64),
}

/// A version that is imported with others.
pub(super) struct BatchedVersion<'a> {
    pub(super) entry: &'a Entry,
    pub(super) parameters: &'a [(&'static str, String)],
    pub(super) headers: &'a [(String, String)],
    pub(super) content: &'a [u8],
}

impl BatchedVersion<'_> {
    /// Appends the request that imports it.
    fn write(&self, path: &str, out: &mut Vec<u8>) {
        let query = version_query(self.entry, self.parameters);
        let target = with_query(&format!("{path}/{}", encode_path(&self.entry.key)), &query);
        // HTTP/1.1 asks for a host, which says nothing here.
        let head =
            format!("PUT {target} HTTP/1.1\r\nhost: batch\r\ncontent-length: {}\r\n", self.content.len());
        out.extend_from_slice(head.as_bytes());
        for (name, value) in self.headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.content);
    }
}

impl<'a> Target<'a> {
    pub(super) fn new(client: &'a Client, source: &'a Remote, events: bool) -> Self {
        Self { client, source, events, runs: Mutex::default(), watch: Watch::default() }
    }

    /// Sends a request until it is answered, or too often. `send` makes one attempt.
    fn attempts(&self, mut send: impl FnMut() -> Result<Response, Failure>) -> Result<Response, Failure> {
        let mut attempt = 1;
        loop {
            let answer = send();
            let may_pass = match &answer {
                Ok(response) => matches!(response.status.as_u16(), 429 | 500 | 502..=504),
                Err(failure) => matches!(failure, Failure::NoResponse(_)),
            };
            if !may_pass || attempt == ATTEMPTS {
                return answer;
            }
            self.source.pause(attempt).map_err(|trouble| super::buckets::failure(&trouble))?;
            attempt += 1;
        }
    }

    /// Sends a request with a JSON body or none. Returns the answer to a success.
    pub(super) fn call(&self, request: &Request) -> Result<Value, Refused> {
        let response = self.attempts(|| self.client.call_raw(request))?;
        self.accepted(request, response)
    }

    fn accepted(&self, request: &Request, response: Response) -> Result<Value, Refused> {
        if response.status.is_success() {
            return Ok(response.body.unwrap_or_default());
        }
        let refusal = || self.client.refusal(request, &response);
        match (response.error("code"), response.error("message")) {
            (
                Some("UNAUTHENTICATED" | "FORBIDDEN" | "NOT_FOUND" | "BUCKET_NOT_FOUND" | "STORAGE_FULL"),
                _,
            )
            | (None, _) => Err(Refused::Command(refusal())),
            _ if response.status.is_server_error() && response.status.as_u16() != 501 => {
                Err(Refused::Command(refusal()))
            }
            (Some(code), message) => Err(Refused::Version {
                code: code.to_owned(),
                message: crate::terminal::plain(message.unwrap_or_default()),
            }),
        }
    }

    /// Sends a request of the bucket's run. Begins a run if there is none, or if the server has forgotten it. `send` gets the
    /// id.
    fn in_run(
        &self,
        bucket: &str,
        mut send: impl FnMut(&str) -> Result<Value, Refused>,
    ) -> Result<Value, Refused> {
        for _ in 0..ATTEMPTS {
            let id = self.run_of(bucket)?;
            match send(&id) {
                Err(Refused::Version { code, .. }) if code == "IMPORT_NOT_FOUND" => {
                    self.forget(bucket, &id);
                }
                answered => return answered,
            }
        }
        Err(Refused::Command("the server forgets the import again and again: does it restart?".into()))
    }

    /// Looks whether the bucket's run is paused, if it has begun. A paused run that a restart of the server has ended is
    /// continued by another one, which is paused, too.
    pub(super) fn look(&self, bucket: &str) {
        let begun = self.runs.lock().get(bucket).cloned();
        match begun {
            Some(id) if self.watch.look(self.client, &id) => self.forget(bucket, &id),
            // An attempt before this one did not begin the other run.
            None if self.watch.is_paused() => {}
            _ => return,
        }
        // If it cannot begin now, the next look tries again.
        drop(self.run_of(bucket));
    }

    /// Forgets a run that the server has forgotten.
    fn forget(&self, bucket: &str, id: &str) {
        let mut runs = self.runs.lock();
        // Another thread may have begun a new run already.
        if runs.get(bucket).is_some_and(|known| known == id) {
            runs.remove(bucket);
        }
    }

    fn run_of(&self, bucket: &str) -> Result<String, Refused> {
        let mut runs = self.runs.lock();
        if let Some(id) = runs.get(bucket) {
            return Ok(id.clone());
        }
        let body = BeginImport {
            source: self.source.endpoint.url().to_owned(),
            events: self.events,
            paused: self.watch.is_paused(),
        };
        let path = format!("{}/imports", bucket_path(bucket));
        let begun: BegunImport = read(&self.call(&Request::post(path).json(&body))?)?;
        runs.insert(bucket.to_owned(), begun.import_id.to_string());
        Ok(begun.import_id.to_string())
    }

    /// Refuses a token that may not import, before anything is made with it.
    pub(super) fn check_role(&self) -> Outcome {
        let own: Session = read(&self.call(&Request::get("/api/v1/auth/session"))?)?;
        if *own.role == *IMPORTING_ROLE {
            return Ok(());
        }
        Err(format!(
            "an import needs a token with the role {IMPORTING_ROLE}, and this one has {}\n  `cairn token create` makes one",
            crate::terminal::plain(&own.role)
        )
        .into())
    }

    /// Makes sure that the bucket exists and can take what the source has. Returns when it was created.
    pub(super) fn prepare(&self, bucket: &SourceBucket) -> Result<String, Refused> {
        let path = bucket_path(&bucket.name);
        let shown: Bucket = read(&match self.attempts(|| self.client.call_raw(&Request::get(&path))) {
            Ok(response) if response.status.as_u16() == 404 => {
                let body =
                    CreateBucket { name: bucket.name.clone().into(), object_lock: bucket.has_object_lock };
                match self.call(&Request::post("/api/v1/buckets").json(&body)) {
                    // An attempt before this one may have created it.
                    Err(Refused::Version { code, .. }) if code == "BUCKET_ALREADY_EXISTS" => {}
                    created => drop(created?),
                }
                for &versioning in steps_to(bucket.versioning.as_deref()) {
                    let body = SetVersioning { versioning };
                    self.call(&Request::put(format!("{path}/versioning")).json(&body))?;
                }
                self.call(&Request::get(&path))?
            }
            Ok(response) => self.accepted(&Request::get(&path), response)?,
            Err(failure) => return Err(failure.into()),
        })?;
        let refused = |message: &str| Refused::Version {
            code: "INVALID_BUCKET_STATE".to_owned(),
            message: message.to_owned(),
        };
        if bucket.has_object_lock && !shown.object_lock {
            return Err(refused("the bucket has object lock at the source, and exists here without it"));
        }
        if bucket.versioning.is_some() && shown.versioning == VersioningState::Unversioned {
            return Err(refused(
                "the bucket has versions at the source, and never had them here: `cairn bucket versioning` turns them on",
            ));
        }
        Ok(shown.created_at.to_string())
    }

    /// Imports a version or a delete marker. Returns the outcome.
    pub(super) fn put(
        &self,
        bucket: &str,
        entry: &Entry,
        parameters: &[(&'static str, String)],
        headers: &[(String, String)],
        content: &mut Content<'_>,
    ) -> Result<ImportOutcome, Refused> {
        let answer = self.in_run(bucket, |id| {
            let query = query_of(id, Some(entry), parameters);
            let path = with_query(
                &format!("{}/imported-objects/{}", bucket_path(bucket), encode_path(&entry.key)),
                &query,
            );
            let request = Request::put(path).long_running();
            let response = match content {
                Content::Bytes(bytes) => {
                    self.attempts(|| self.client.send_bytes(&request, headers, bytes))?
                }
                // A stream is read once: its reader tries again.
                Content::Stream(reader, size) => self.client.send_stream(&request, headers, reader, *size)?,
            };
            self.accepted(&request, response)
        })?;
        outcome_of(&answer)
    }

    /// Imports several versions in one request. Returns the outcome of each, or `None` for one that was refused.
    pub(super) fn put_batch(
        &self,
        bucket: &str,
        versions: &[BatchedVersion<'_>],
    ) -> Result<Vec<Option<ImportOutcome>>, Refused> {
        let path = format!("{}/imported-objects", bucket_path(bucket));
        let mut body = Vec::new();
        for version in versions {
            version.write(&path, &mut body);
        }
        let media_type = [("content-type".to_owned(), "application/http".to_owned())];
        let answer = self.in_run(bucket, |id| {
            let request = Request::post(with_query(&path, &query_of(id, None, &[]))).long_running();
            let response = self.attempts(|| self.client.send_bytes(&request, &media_type, &body))?;
            self.accepted(&request, response)
        })?;
        let answered: ImportedVersions = read(&answer)?;
        if answered.versions.len() != versions.len() {
            return Err("the response does not contain the outcome of each version".into());
        }
        Ok(answered.versions.into_iter().map(|one| one.outcome).collect())
    }

    /// Begins an upload in parts. Returns its id.
    pub(super) fn begin_upload(
        &self,
        bucket: &str,
        key: &str,
        headers: &[(String, String)],
    ) -> Result<String, Refused> {
        let begun = self.in_run(bucket, |id| {
            let request = Request::post(upload_path(bucket, key, &query_of(id, None, &[])));
            let response = self.attempts(|| self.client.send_bytes(&request, headers, b""))?;
            self.accepted(&request, response)
        })?;
        let begun: ImportedUpload = read(&begun)?;
        Ok(begun.upload_id.to_string())
    }

    /// Sends a part. Returns its entity tag.
    pub(super) fn put_part(
        &self,
        bucket: &str,
        key: &str,
        (upload, number): (&str, u32),
        content: &mut Content<'_>,
    ) -> Result<String, Refused> {
        let part = [("upload_id", upload.to_owned()), ("part_number", number.to_string())];
        let answer = self.in_run(bucket, |id| {
            let request = Request::put(upload_path(bucket, key, &query_of(id, None, &part))).long_running();
            let response = match content {
                Content::Bytes(bytes) => self.attempts(|| self.client.send_bytes(&request, &[], bytes))?,
                Content::Stream(reader, size) => self.client.send_stream(&request, &[], reader, *size)?,
            };
            self.accepted(&request, response)
        })?;
        let part: ImportedPart = read(&answer)?;
        Ok(part.etag.trim_matches('"').to_owned())
    }

    /// Removes an upload. One that is gone is no error.
    pub(super) fn abort_upload(&self, bucket: &str, key: &str, upload: &str) -> Result<(), Refused> {
        let path = format!("{}/multipart-uploads/{}", bucket_path(bucket), encode_path(key));
        match self.call(&Request::delete(with_query(&path, &[("upload_id", upload.to_owned())]))) {
            Err(Refused::Version { .. }) | Ok(_) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Brings tags and lock of an imported version up to date. Returns the outcome.
    pub(super) fn change(
        &self,
        bucket: &str,
        entry: &Entry,
        settings: &Settings,
    ) -> Result<ImportOutcome, Refused> {
        let tag = |(key, value): &(String, String)| Tag { key: key.clone(), value: value.clone() };
        let here = self.record(bucket, &entry.key, entry.id())?;
        let is_held = here.as_ref().map(|here| here.object.legal_hold);
        let body = ChangeImported {
            tags: Some(settings.tags.iter().map(tag).collect()),
            retention: settings.lock.retention.as_ref().map(retention_of).transpose()?,
            // Only buckets with object lock have holds.
            legal_hold: Some(settings.lock.legal_hold)
                .filter(|wanted| is_held.is_some_and(|held| held != *wanted)),
        };
        let is_retained = here.is_some_and(|here| here.object.retention.is_some());
        let version = [("version_id", entry.id().to_owned())];
        if is_retained && settings.lock.retention.is_none() {
            let path = format!("{}/object-retention/{}", bucket_path(bucket), encode_path(&entry.key));
            let none = SetRetention { retention: None, bypass_governance: true };
            self.call(&Request::put(with_query(&path, &version)).json(&none))?;
        }
        let answer = self.in_run(bucket, |id| {
            let query = query_of(id, None, &version);
            let path = format!("{}/imported-objects/{}", bucket_path(bucket), encode_path(&entry.key));
            self.call(&Request::patch(with_query(&path, &query)).json(&body))
        })?;
        outcome_of(&answer)
    }

    /// Returns what is here under an id; `None` if nothing is, or a delete marker.
    pub(super) fn record(&self, bucket: &str, key: &str, id: &str) -> Result<Option<ObjectRecord>, Refused> {
        let path = format!("{}/object/{}", bucket_path(bucket), encode_path(key));
        let request = Request::get(with_query(&path, &[("version_id", id.to_owned())]));
        match self.call(&request) {
            Ok(body) => Ok(Some(read(&body)?)),
            Err(Refused::Version { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns the version or delete marker that is here under an id.
    pub(super) fn version(
        &self,
        bucket: &str,
        key: &str,
        id: &str,
    ) -> Result<Option<ObjectVersion>, Refused> {
        let mut pages = Pages::of_bucket(self.client, VERSIONS, bucket, key, None);
        while let Some(versions) = pages.next_entries::<ObjectVersion>()? {
            // Longer keys with this prefix follow.
            if versions.first().is_some_and(|first| *first.key != *key) {
                return Ok(None);
            }
            if let Some(found) = versions.into_iter().find(|one| *one.key == *key && *one.version_id == *id) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Permanently deletes an imported version. Returns `false` if no imported version has this id any more.
    pub(super) fn delete(&self, bucket: &str, key: &str, id: &str) -> Result<bool, Refused> {
        let path = format!("{}/object-versions/{}", bucket_path(bucket), encode_path(key));
        let named = [("version_id", id.to_owned()), ("only_imported", "true".to_owned())];
        match self.call(&Request::delete(with_query(&path, &named))) {
            Ok(_) => Ok(true),
            Err(Refused::Version { code, .. })
                if matches!(code.as_str(), "VERSION_NOT_FOUND" | "OBJECT_NOT_FOUND") =>
            {
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }
}

/// Returns tags and lock of a version that is here.
pub(super) fn settings_of(here: &ObjectRecord) -> Settings {
    let mut tags: Vec<_> = here.tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect();
    tags.sort_unstable();
    let retention = here.object.retention.as_ref().and_then(|retention| {
        let until = parse_rfc3339_millis(&retention.retain_until)?;
        let mode = serde_json::to_value(retention.mode).ok()?.as_str()?.to_owned();
        Some((mode, until))
    });
    Settings { tags, lock: Lock { retention, legal_hold: here.object.legal_hold } }
}

/// Returns the states that a new bucket goes through.
fn steps_to(versioning: Option<&str>) -> &'static [VersioningState] {
    match versioning {
        None => &[],
        Some("Enabled") => &[VersioningState::Enabled],
        Some(_) => &[VersioningState::Enabled, VersioningState::Suspended],
    }
}

fn retention_of((mode, until): &(String, u64)) -> Result<Retention, Refused> {
    let known = serde_json::from_value(mode.as_str().into());
    let mode = known.map_err(|_| Refused::Version {
        code: "INVALID_REQUEST".to_owned(),
        message: format!("the retention mode {} is unknown", crate::terminal::plain(mode)),
    })?;
    Ok(Retention { mode, retain_until: iso8601_millis(*until).into() })
}

pub(super) fn bucket_path(bucket: &str) -> String {
    format!("/api/v1/buckets/{}", encode_strict(bucket))
}

fn upload_path(bucket: &str, key: &str, query: &Query) -> String {
    with_query(&format!("{}/imported-uploads/{}", bucket_path(bucket), encode_path(key)), query)
}

fn query_of(id: &str, entry: Option<&Entry>, more: &[(&'static str, String)]) -> Query {
    let mut query = vec![("import_id", id.to_owned())];
    match entry {
        Some(entry) => query.extend(version_query(entry, more)),
        None => query.extend_from_slice(more),
    }
    query
}

/// Returns the parameters that describe a version.
fn version_query(entry: &Entry, more: &[(&'static str, String)]) -> Query {
    let identity = [("version_id", entry.id().to_owned()), ("last_modified", iso8601_millis(entry.modified))];
    identity.into_iter().chain(more.iter().cloned()).collect()
}

fn outcome_of(answer: &Value) -> Result<ImportOutcome, Refused> {
    let answer: ImportedVersion = read(answer)?;
    Ok(answer.outcome)
}

impl From<&str> for Refused {
    fn from(message: &str) -> Self {
        Self::Command(message.into())
    }
}

/// Returns the headers of tags and lock.
pub(super) fn settings_headers(settings: &Settings) -> Vec<(String, String)> {
    let Settings { tags, lock: Lock { retention, legal_hold } } = settings;
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    if !tags.is_empty() {
        add("x-amz-tagging", settings.tags_text());
    }
    if let Some((mode, until)) = retention {
        add("x-amz-object-lock-mode", mode.clone());
        add("x-amz-object-lock-retain-until-date", iso8601_millis(*until));
    }
    if *legal_hold {
        add("x-amz-object-lock-legal-hold", "ON".to_owned());
    }
    headers
}
