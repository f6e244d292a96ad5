//! ListBuckets, with the pagination that AWS added in 2024. Source: API Reference, ListBuckets.

use crate::access::account;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::{S3Error, S3Result};
use crate::reply::Reply;
use crate::request::query::Query;
use crate::xml::writer::XmlWriter;
use cairn_engine::Bucket;
use cairn_transfer::list_token;
use std::sync::Arc;

/// Most buckets on one page.
const BUCKETS_MAX: usize = 10_000;

/// The parsed query.
#[derive(Debug)]
struct ListRequest<'a> {
    prefix: &'a str,
    max: usize,
    after: Option<String>,
    /// Only buckets of this region.
    region: Option<&'a str>,
    /// As on AWS, the region of each bucket is written only if the query has any parameter.
    with_region: bool,
}

pub(crate) fn list_buckets(call: &Call<'_>) -> S3Result<Reply> {
    let request = list_request(call.query, call.compatibility)?;
    let buckets = call.engine.store().buckets();
    let is_shown = |bucket: &Bucket| {
        call.authentication.principal.sees_bucket(bucket.name.as_str(), call.request.client)
    };
    let (page, next) = page(&buckets, &request, is_shown);
    let mut xml = XmlWriter::with_capacity(512 + 128 * page.len());
    xml.open_root("ListAllMyBucketsResult");
    account::write_owner(&mut xml);
    xml.open("Buckets");
    for bucket in &page {
        xml.open("Bucket");
        xml.text("Name", bucket.name.as_str());
        xml.time("CreationDate", bucket.created_at);
        if request.with_region {
            xml.text("BucketRegion", &account::region_of(bucket));
            if call.compatibility == Compatibility::Extended {
                xml.text("BucketArn", &account::bucket_arn(bucket.name.as_str()));
            }
        }
        xml.close("Bucket");
    }
    xml.close("Buckets");
    if !request.prefix.is_empty() {
        xml.text("Prefix", request.prefix);
    }
    if let Some(next) = next {
        xml.text("ContinuationToken", &next);
    }
    xml.close("ListAllMyBucketsResult");
    Ok(Reply::xml(xml))
}

fn list_request<'a>(query: &'a Query<'_>, mode: Compatibility) -> S3Result<ListRequest<'a>> {
    const PARAMETERS: [&str; 4] = ["prefix", "max-buckets", "continuation-token", "bucket-region"];
    let max = match query.get("max-buckets") {
        None => BUCKETS_MAX,
        Some(text) => text.parse().ok().filter(|max| (1..=BUCKETS_MAX).contains(max)).ok_or_else(|| {
            S3Error::invalid_argument("max-buckets", text, "max-buckets must be between 1 and 10000.")
        })?,
    };
    let after = match query.get_non_empty("continuation-token") {
        None => None,
        Some(text) => Some(list_token::to_bucket(text).ok_or_else(|| {
            let message = "The continuation token provided is incorrect.";
            S3Error::invalid_argument("continuation-token", text, message)
        })?),
    };
    let region = query.get_non_empty("bucket-region");
    if let Some(unknown) = region.filter(|name| mode == Compatibility::Extended && !account::is_region(name))
    {
        let message = format!("Argument value {} is not a valid AWS Region", unknown.escape_default());
        return Err(S3Error::invalid_argument_name("bucket-region", message));
    }
    Ok(ListRequest {
        prefix: query.get("prefix").unwrap_or_default(),
        max,
        after,
        region,
        with_region: PARAMETERS.iter().any(|name| query.has(name)),
    })
}

/// Returns the buckets of one page and the token of the next page. `buckets` is sorted by name. Buckets that the
/// principal may not see are skipped.
fn page<'b>(
    buckets: &'b [Arc<Bucket>],
    request: &ListRequest<'_>,
    is_shown: impl Fn(&Bucket) -> bool,
) -> (Vec<&'b Bucket>, Option<String>) {
    debug_assert!(buckets.is_sorted_by_key(|bucket| bucket.name.as_str()), "buckets are sorted by name");
    let start = match &request.after {
        Some(after) => buckets.partition_point(|bucket| bucket.name.as_str() <= after.as_str()),
        None => 0,
    };
    let mut matching = buckets[start..]
        .iter()
        .map(|bucket| &**bucket)
        .filter(|bucket| bucket.name.as_str().starts_with(request.prefix) && is_shown(bucket))
        .filter(|bucket| request.region.is_none_or(|region| account::region_of(bucket) == region));
    let page: Vec<&Bucket> = matching.by_ref().take(request.max).collect();
    let next = matching.next().and(page.last()).map(|last| list_token::of_bucket(last.name.as_str()));
    (page, next)
}

#[cfg(test)]
mod tests {
    use super::list_request;
    use crate::compatibility::Compatibility;
    use crate::request::query::Query;
    use cairn_transfer::list_token;

    #[test]
    fn parameters_out_of_range_are_invalid_arguments() {
        for raw in
            ["max-buckets=0", "max-buckets=10001", "max-buckets=x", "max-buckets=", "continuation-token=x"]
        {
            let query = Query::parse(Some(raw)).expect("parses");
            assert_eq!(list_request(&query, Compatibility::Strict).expect_err(raw).code(), "InvalidArgument");
        }
        let raw = format!("max-buckets=2&prefix=a&continuation-token={}", list_token::of_bucket("abc"));
        let query = Query::parse(Some(&raw)).expect("parses");
        let request = list_request(&query, Compatibility::Strict).expect("ok");
        assert_eq!((request.max, request.prefix, request.after.as_deref()), (2, "a", Some("abc")));
        assert!(request.with_region && request.region.is_none());
    }
}
