//! The calls of the compatibility matrix with the AWS SDK for Rust: one line of JSON in, one out.
//!
//! `tests/client_matrix/clients/sdk.py` describes the lines. Endpoint, keys, region, checksum settings and the trusted
//! certificate (`SSL_CERT_FILE`) come from the environment.

use aws_config::BehaviorVersion;
use aws_sdk_s3::Client;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use aws_sdk_s3::types::{
    BucketVersioningStatus, CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier, ObjectLockLegalHold,
    ObjectLockLegalHoldStatus, ObjectLockRetention, ObjectLockRetentionMode, Tag, Tagging, VersioningConfiguration,
};
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::{Duration, SystemTime};

const PART_BYTES: usize = 5 << 20;
const COPY_WHOLE_BYTES: i64 = 32 << 20;
const COPY_WHOLE_BYTES_RECOMMENDED: i64 = 5 << 30;
const LINK_SECONDS: u64 = 300;

type Outcome<T = Value> = Result<T, Box<dyn Error>>;

/// The arguments of one call.
struct Given(Value);

impl Given {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or_default()
    }

    /// The version that the call names.
    fn version(&self) -> Option<String> {
        self.0["version"].as_str().map(str::to_owned)
    }
}

/// Describes an error with all its causes: the SDK's own text is only "service error".
fn described(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

async fn buckets_and_objects(client: &Client, given: &Given) -> Outcome<Option<Value>> {
    let (bucket, key) = (given.text("bucket"), given.text("key"));
    let answer = match given.text("call") {
        "make" => client.create_bucket().bucket(bucket).send().await.map(|_| Value::Null)?,
        "drop" => client.delete_bucket().bucket(bucket).send().await.map(|_| Value::Null)?,
        "buckets" => {
            let output = client.list_buckets().send().await?;
            output.buckets().iter().map(|bucket| json!(bucket.name())).collect()
        }
        "upload" | "pipe" => upload(client, given).await?,
        "download" | "part" => download(client, given).await?,
        "list" | "folders" => list(client, given).await?,
        "link_to_get" => {
            let request = client.get_object().bucket(bucket).key(key);
            json!(request.presigned(PresigningConfig::expires_in(Duration::from_secs(LINK_SECONDS))?).await?.uri())
        }
        "link_to_put" => {
            let request = client.put_object().bucket(bucket).key(key);
            json!(request.presigned(PresigningConfig::expires_in(Duration::from_secs(LINK_SECONDS))?).await?.uri())
        }
        "remove" => {
            client.delete_object().bucket(bucket).key(key).set_version_id(given.version()).send().await?;
            Value::Null
        }
        "remove_many" => remove_many(client, given).await?,
        "copy" => copy(client, given).await?,
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

async fn upload(client: &Client, given: &Given) -> Outcome {
    let content = tokio::fs::read(given.text("file")).await?;
    let (bucket, key) = (given.text("bucket"), given.text("key"));
    if content.len() <= PART_BYTES {
        client.put_object().bucket(bucket).key(key).body(ByteStream::from(content)).send().await?;
        return Ok(Value::Null);
    }
    let created = client.create_multipart_upload().bucket(bucket).key(key).send().await?;
    let id = created.upload_id().unwrap_or_default();
    let mut parts = Vec::new();
    for (number, piece) in (1..).zip(content.chunks(PART_BYTES)) {
        let request = client.upload_part().bucket(bucket).key(key).upload_id(id).part_number(number);
        let part = request.body(ByteStream::from(piece.to_vec())).send().await?;
        let checksum = part.checksum_crc32().map(str::to_owned);
        let etag = part.e_tag().unwrap_or_default();
        parts.push(CompletedPart::builder().part_number(number).e_tag(etag).set_checksum_crc32(checksum).build());
    }
    complete(client, bucket, key, id, parts).await
}

async fn complete(client: &Client, bucket: &str, key: &str, id: &str, parts: Vec<CompletedPart>) -> Outcome {
    let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
    let request = client.complete_multipart_upload().bucket(bucket).key(key).upload_id(id);
    request.multipart_upload(parts).send().await?;
    Ok(Value::Null)
}

async fn download(client: &Client, given: &Given) -> Outcome {
    let request = client.get_object().bucket(given.text("bucket")).key(given.text("key"));
    let range = format!("bytes={}-{}", given.number("first"), given.number("last"));
    let range = (given.text("call") == "part").then_some(range);
    let output = request.set_version_id(given.version()).set_range(range).send().await?;
    tokio::fs::write(given.text("file"), output.body.collect().await?.into_bytes()).await?;
    Ok(Value::Null)
}

async fn list(client: &Client, given: &Given) -> Outcome {
    let folders = given.text("call") == "folders";
    let delimiter = folders.then(|| "/".to_owned());
    let request = client.list_objects_v2().bucket(given.text("bucket")).set_delimiter(delimiter);
    let mut pages = request.into_paginator().send();
    let mut names = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page?;
        if folders {
            names.extend(page.common_prefixes().iter().map(|folder| json!(folder.prefix())));
        } else {
            names.extend(page.contents().iter().map(|item| json!(item.key())));
        }
    }
    Ok(Value::Array(names))
}

async fn remove_many(client: &Client, given: &Given) -> Outcome {
    let keys = given.0["keys"].as_array().cloned().unwrap_or_default();
    let object = |key: &Value| ObjectIdentifier::builder().key(key.as_str().unwrap_or_default()).build();
    let objects = keys.iter().map(object).collect::<Result<Vec<_>, _>>()?;
    let delete = Delete::builder().set_objects(Some(objects)).build()?;
    let output = client.delete_objects().bucket(given.text("bucket")).delete(delete).send().await?;
    match output.errors().first() {
        Some(error) => Err(format!("{}: {}", error.code().unwrap_or_default(), error.message().unwrap_or_default()).into()),
        None => Ok(Value::Null),
    }
}

/// Copies an object; a large one in pieces, as an application does above 5 GiB.
async fn copy(client: &Client, given: &Given) -> Outcome {
    let (bucket, key, other) = (given.text("bucket"), given.text("key"), given.text("other"));
    let source = format!("{bucket}/{}", key.replace(' ', "%20"));
    let size = client.head_object().bucket(bucket).key(key).send().await?.content_length().unwrap_or_default();
    let recommended = std::env::var_os("CAIRN_RECOMMENDED").is_some();
    if size <= if recommended { COPY_WHOLE_BYTES_RECOMMENDED } else { COPY_WHOLE_BYTES } {
        client.copy_object().bucket(bucket).key(other).copy_source(source).send().await?;
        return Ok(Value::Null);
    }
    let created = client.create_multipart_upload().bucket(bucket).key(other).send().await?;
    let id = created.upload_id().unwrap_or_default();
    let (mut parts, mut first) = (Vec::new(), 0);
    while first < size {
        let (number, last) = (i32::try_from(parts.len() + 1)?, (first + COPY_WHOLE_BYTES).min(size) - 1);
        let request = client.upload_part_copy().bucket(bucket).key(other).upload_id(id).part_number(number);
        let output = request.copy_source(&source).copy_source_range(format!("bytes={first}-{last}")).send().await?;
        let etag = output.copy_part_result().and_then(|part| part.e_tag()).unwrap_or_default();
        parts.push(CompletedPart::builder().part_number(number).e_tag(etag).build());
        first = last + 1;
    }
    complete(client, bucket, other, id, parts).await
}

/// Makes the calls about versions, locks and tags.
async fn versions_locks_tags(client: &Client, given: &Given) -> Outcome {
    let (bucket, key) = (given.text("bucket"), given.text("key"));
    match given.text("call") {
        "version_on" => {
            let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
            client.put_bucket_versioning().bucket(bucket).versioning_configuration(enabled).send().await?;
            Ok(Value::Null)
        }
        "versions" => {
            let output = client.list_object_versions().bucket(bucket).send().await?;
            Ok(output.versions().iter().map(|version| json!(version.version_id())).collect())
        }
        "retain" => {
            let until = SystemTime::now() + Duration::from_secs(given.number("seconds").unsigned_abs());
            let retention = ObjectLockRetention::builder()
                .mode(ObjectLockRetentionMode::Governance)
                .retain_until_date(DateTime::from(until));
            client.put_object_retention().bucket(bucket).key(key).retention(retention.build()).send().await?;
            Ok(Value::Null)
        }
        "retention" => {
            let output = client.get_object_retention().bucket(bucket).key(key).send().await?;
            Ok(json!(output.retention().and_then(|retention| retention.mode()).map(|mode| mode.as_str())))
        }
        "hold" => {
            let hold = ObjectLockLegalHold::builder().status(ObjectLockLegalHoldStatus::from(given.text("state"))).build();
            client.put_object_legal_hold().bucket(bucket).key(key).legal_hold(hold).send().await?;
            Ok(Value::Null)
        }
        call => tags(client, given, call).await,
    }
}

async fn tags(client: &Client, given: &Given, call: &str) -> Outcome {
    let (bucket, key) = (given.text("bucket"), given.text("key"));
    let tag = || Tag::builder().key(given.text("name")).value(given.text("value")).build();
    let named = |tags: &[Tag]| {
        let named: Map<_, _> = tags.iter().map(|tag| (tag.key().to_owned(), json!(tag.value()))).collect();
        Value::Object(named)
    };
    match call {
        "tag" => {
            let tagging = Tagging::builder().tag_set(tag()?).build()?;
            client.put_object_tagging().bucket(bucket).key(key).tagging(tagging).send().await?;
            Ok(Value::Null)
        }
        "tags" => Ok(named(client.get_object_tagging().bucket(bucket).key(key).send().await?.tag_set())),
        "tag_bucket" => {
            let tagging = Tagging::builder().tag_set(tag()?).build()?;
            client.put_bucket_tagging().bucket(bucket).tagging(tagging).send().await?;
            Ok(Value::Null)
        }
        "tags_of_bucket" => Ok(named(client.get_bucket_tagging().bucket(bucket).send().await?.tag_set())),
        _ => Err(format!("no call {call}").into()),
    }
}

async fn client() -> Outcome<Client> {
    let mut trust = TrustStore::empty();
    if let Ok(path) = std::env::var("SSL_CERT_FILE") {
        trust = trust.with_pem_certificate(std::fs::read(path)?);
    }
    let context = TlsContext::builder().with_trust_store(trust).build()?;
    let provider = Provider::Rustls(CryptoMode::Ring);
    let http = aws_smithy_http_client::Builder::new().tls_provider(provider).tls_context(context).build_https();
    let settings = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    Ok(Client::from_conf(aws_sdk_s3::config::Builder::from(&settings).force_path_style(true).build()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let client = client().await?;
    for line in std::io::stdin().lock().lines() {
        let given = Given(serde_json::from_str(&line?)?);
        let result = match buckets_and_objects(&client, &given).await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => versions_locks_tags(&client, &given).await,
            Err(error) => Err(error),
        };
        let answer = match result {
            Ok(value) => json!({ "result": value }),
            Err(error) => json!({ "error": described(error.as_ref()) }),
        };
        writeln!(std::io::stdout(), "{answer}")?;
    }
    Ok(())
}
