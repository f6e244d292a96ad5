//! ListBuckets, paginated as AWS has it since 2024. Source: API Reference, ListBuckets.

use crate::account::{self, REGION};
use crate::call::Call;
use crate::errors::{S3Error, S3Result};
use crate::query::Query;
use crate::reply::Reply;
use crate::token;
use crate::xml::writer::XmlWriter;
use cairn_engine::Bucket;
use cairn_http1::iso8601_millis;
use std::sync::Arc;

/// Most buckets on one page.
const BUCKETS_MAX: usize = 10_000;

/// What the query asks for.
#[derive(Debug)]
struct Asked<'a> {
    prefix: &'a str,
    max: usize,
    after: Option<String>,
    /// A region other than ours has no buckets.
    other_region: bool,
    /// AWS names the region of each bucket only when any parameter is there.
    with_region: bool,
}

pub(crate) fn list_buckets(call: &Call<'_>) -> S3Result<Reply> {
    let asked = asked(call.query)?;
    let buckets = call.engine.store().buckets();
    let is_shown = |bucket: &Bucket| call.authentication.principal.sees_bucket(bucket.name.as_str());
    let (page, next) = page(&buckets, &asked, is_shown);
    let mut xml = XmlWriter::with_capacity(512 + 128 * page.len());
    xml.open_root("ListAllMyBucketsResult");
    account::write_owner(&mut xml);
    xml.open("Buckets");
    for bucket in &page {
        xml.open("Bucket");
        xml.text("Name", bucket.name.as_str());
        xml.value("CreationDate", iso8601_millis(bucket.created_at.0));
        if asked.with_region {
            xml.text("BucketRegion", REGION);
        }
        xml.close("Bucket");
    }
    xml.close("Buckets");
    if !asked.prefix.is_empty() {
        xml.text("Prefix", asked.prefix);
    }
    if let Some(next) = next {
        xml.text("ContinuationToken", &next);
    }
    xml.close("ListAllMyBucketsResult");
    Ok(Reply::xml(xml))
}

fn asked<'a>(query: &'a Query<'_>) -> S3Result<Asked<'a>> {
    const PARAMETERS: [&str; 4] = ["prefix", "max-buckets", "continuation-token", "bucket-region"];
    let max = match query.get("max-buckets") {
        None => BUCKETS_MAX,
        Some(text) => text.parse().ok().filter(|max| (1..=BUCKETS_MAX).contains(max)).ok_or_else(|| {
            S3Error::invalid_argument("max-buckets", text, "max-buckets must be between 1 and 10000.")
        })?,
    };
    let after = match query.get_non_empty("continuation-token") {
        None => None,
        Some(text) => Some(token::to_bucket(text).ok_or_else(|| {
            let message = "The continuation token provided is incorrect.";
            S3Error::invalid_argument("continuation-token", text, message)
        })?),
    };
    Ok(Asked {
        prefix: query.get("prefix").unwrap_or_default(),
        max,
        after,
        other_region: query.get_non_empty("bucket-region").is_some_and(|region| region != REGION),
        with_region: PARAMETERS.iter().any(|name| query.has(name)),
    })
}

/// The buckets of one page, out of all in order of name, and the token of the next page. Those that are not shown to who asks
/// are as if they were not there.
fn page<'b>(
    buckets: &'b [Arc<Bucket>],
    asked: &Asked<'_>,
    is_shown: impl Fn(&Bucket) -> bool,
) -> (Vec<&'b Bucket>, Option<String>) {
    if asked.other_region {
        return (Vec::new(), None);
    }
    let start = match &asked.after {
        Some(after) => buckets.partition_point(|bucket| bucket.name.as_str() <= after.as_str()),
        None => 0,
    };
    let mut matching = buckets[start..]
        .iter()
        .map(|bucket| &**bucket)
        .filter(|bucket| bucket.name.as_str().starts_with(asked.prefix) && is_shown(bucket));
    let page: Vec<&Bucket> = matching.by_ref().take(asked.max).collect();
    let next = matching.next().and(page.last()).map(|last| token::of_bucket(last.name.as_str()));
    (page, next)
}

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::query::Query;
    use crate::token;

    #[test]
    fn parameters_out_of_range_are_invalid_arguments() {
        for raw in
            ["max-buckets=0", "max-buckets=10001", "max-buckets=x", "max-buckets=", "continuation-token=x"]
        {
            let query = Query::parse(Some(raw)).expect("parses");
            assert_eq!(asked(&query).expect_err(raw).code(), "InvalidArgument");
        }
        let raw = format!("max-buckets=2&prefix=a&continuation-token={}", token::of_bucket("abc"));
        let query = Query::parse(Some(&raw)).expect("parses");
        let asked = asked(&query).expect("ok");
        assert_eq!((asked.max, asked.prefix, asked.after.as_deref()), (2, "a", Some("abc")));
        assert!(asked.with_region && !asked.other_region);
    }
}
