//! The routes of a bucket's CORS rules: get, replace, remove.
//!
//! They are the rules that PutBucketCors stores, with the same limits. The data plane applies them.

use cairn_api::{CorsRule, CorsRules, SetCorsRules};
use cairn_cors::{
    CONFIGURATION_BYTES_MAX, CorsError, HeaderList, ID_CHARACTERS_MAX, METHODS, OriginMatching, Problem,
    RULES_MAX, Rule, Rules,
};
use cairn_engine::{Bucket, BucketChange};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::reply::Reply;
use crate::request::body::parse_json;

fn rule_body(rule: &Rule) -> CorsRule {
    let Rule { id, origins, methods, allowed_headers, expose_headers, max_age_seconds } = rule.clone();
    CorsRule {
        id,
        allowed_origins: origins.into_iter().map(Into::into).collect(),
        allowed_methods: methods.into_iter().map(Into::into).collect(),
        allowed_headers: allowed_headers.into_iter().map(Into::into).collect(),
        expose_headers: expose_headers.into_iter().map(Into::into).collect(),
        max_age_seconds,
    }
}

pub(crate) fn rule_of(body: CorsRule) -> Rule {
    Rule {
        id: body.id,
        origins: body.allowed_origins.into_iter().map(Into::into).collect(),
        methods: body.allowed_methods.into_iter().map(Into::into).collect(),
        allowed_headers: body.allowed_headers.into_iter().map(Into::into).collect(),
        expose_headers: body.expose_headers.into_iter().map(Into::into).collect(),
        max_age_seconds: body.max_age_seconds,
    }
}

fn rules_body(rules: &Rules) -> CorsRules {
    CorsRules { rules: rules.rules().iter().map(rule_body).collect() }
}

/// Returns the stored rules of a bucket; an empty list if it has none.
fn stored(bucket: &Bucket) -> Result<CorsRules, AdminError> {
    match bucket.settings().cors.as_deref() {
        None => Ok(CorsRules { rules: Vec::new() }),
        Some(stored) => Rules::decode(stored).as_ref().map(rules_body).ok_or_else(|| {
            tracing::error!(target: "service", bucket = %bucket.name, "the CORS rules cannot be read");
            AdminError::Internal
        }),
    }
}

/// Returns how a server of this mode compares origins.
pub(crate) fn matching(s3_compatibility: &str) -> OriginMatching {
    if s3_compatibility == "extended" { OriginMatching::Patterns } else { OriginMatching::Exact }
}

/// `GET /api/v1/buckets/{bucket}/cors`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    Reply::json(StatusCode::OK, &stored(&*call.bucket()?)?)
}

/// `PUT /api/v1/buckets/{bucket}/cors`: replaces all rules.
pub(crate) async fn set(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    let json = call.body_bytes().await?;
    if json.len() > CONFIGURATION_BYTES_MAX {
        let message = format!("the CORS rules of a bucket have at most {CONFIGURATION_BYTES_MAX} bytes");
        return Err(AdminError::Invalid(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let body: SetCorsRules = parse_json(&json)?;
    let matching = matching(call.context.capabilities.s3_compatibility);
    let rules = Rules::new(body.rules.into_iter().map(rule_of).collect(), matching).map_err(refusal)?;
    call.store()?.change_bucket(&bucket, BucketChange::Cors(Some(rules.encode()))).await?;
    let detail = format!("{} rules", rules.rules().len());
    Ok(Reply::json(StatusCode::OK, &rules_body(&rules))?.detail(detail))
}

/// `DELETE /api/v1/buckets/{bucket}/cors`: removes all rules. Succeeds if there are none, too.
pub(crate) async fn delete(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let bucket = call.bucket()?;
    call.store()?.change_bucket(&bucket, BucketChange::Cors(None)).await?;
    Ok(Reply::no_content())
}

/// Words an error with the member of the document.
pub(crate) fn refusal(error: CorsError) -> AdminError {
    AdminError::invalid(match error {
        CorsError::NoRules => "rules: at least one is required; DELETE this route to remove all".to_owned(),
        CorsError::TooManyRules => format!("rules: a bucket can have at most {RULES_MAX}"),
        CorsError::Rule { index, problem } => format!("rules[{index}].{}", problem_text(&problem)),
    })
}

fn problem_text(problem: &Problem) -> String {
    match problem {
        Problem::Id => {
            format!("id: it has at most {ID_CHARACTERS_MAX} characters, without control characters")
        }
        Problem::NoOrigin => "allowed_origins: at least one is required; \"*\" allows all".to_owned(),
        Problem::NoMethod => format!("allowed_methods: at least one of {} is required", METHODS.join(", ")),
        Problem::Origin { text, why } => format!("allowed_origins: {text:?} is not valid: {why}"),
        Problem::Method(text) => {
            format!("allowed_methods: {text:?} is not one of {}", METHODS.join(", "))
        }
        Problem::Wildcards(text) => format!("allowed_headers: {text:?} has more than one *"),
        Problem::ExposedWildcard(text) => format!("expose_headers: {text:?} has a *: name each header"),
        Problem::Header { list: HeaderList::Allowed, text } => {
            format!("allowed_headers: {text:?} is not the name of a header")
        }
        Problem::Header { list: HeaderList::Exposed, text } => {
            format!("expose_headers: {text:?} is not the name of a header")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OriginMatching, Rules, SetCorsRules, refusal, rule_of, rules_body};

    fn read(rules: &str) -> Result<Rules, String> {
        let body: SetCorsRules =
            serde_json::from_str(&format!("{{\"rules\": {rules}}}")).map_err(|error| error.to_string())?;
        Rules::new(body.rules.into_iter().map(rule_of).collect(), OriginMatching::Exact)
            .map_err(|error| refusal(error).message())
    }

    #[test]
    fn rules_are_read_and_written_alike() {
        let text = r#"{"rules":[{"id":"a","allowed_origins":["https://a.example"],"allowed_methods":["GET"],"allowed_headers":["x-*"],"expose_headers":["ETag"],"max_age_seconds":5},{"allowed_origins":["*"],"allowed_methods":["PUT"],"allowed_headers":[],"expose_headers":[]}]}"#;
        let body: SetCorsRules = serde_json::from_str(text).expect("rules");
        let rules =
            Rules::new(body.rules.into_iter().map(rule_of).collect(), OriginMatching::Exact).expect("valid");
        assert_eq!(serde_json::to_string(&rules_body(&rules)).expect("writes"), text);
    }

    #[test]
    fn refusals_name_the_rule_and_the_member() {
        let least = r#""allowed_origins": ["*"], "allowed_methods": ["GET"]"#;
        for (rules, said) in [
            ("[]".to_owned(), "rules: at least one"),
            (
                format!("[{{{least}}}, {{\"allowed_origins\": [], \"allowed_methods\": [\"GET\"]}}]"),
                "rules[1].allowed_origins",
            ),
            (
                "[{\"allowed_origins\": [\"*\"], \"allowed_methods\": [\"get\"]}]".to_owned(),
                "rules[0].allowed_methods: \"get\"",
            ),
            (format!("[{{{least}, \"max_age_seconds\": -1}}]"), "invalid value"),
            (format!("[{{{least}, \"origins\": []}}]"), "unknown field"),
        ] {
            let refused = read(&rules).expect_err(&rules);
            assert!(refused.contains(said), "{refused}");
        }
    }
}
