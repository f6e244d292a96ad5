//! Reads and writes the XML of a CORS configuration. Source: API Reference, PutBucketCors, CORSConfiguration and
//! CORSRule.

use crate::compatibility::Compatibility;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::xml::reader::Element;
use crate::xml::writer::XmlWriter;
use cairn_cors::{CorsError, HeaderList, Problem, Rule, Rules};

/// Reads a configuration.
///
/// # Errors
/// `MalformedXML` for a document of another form, `InvalidRequest` with the reason for a value that is not allowed.
pub(crate) fn read(document: &Element, mode: Compatibility) -> S3Result<Rules> {
    let rules = document.children_named("CORSRule").map(read_rule).collect::<S3Result<Vec<Rule>>>()?;
    Rules::new(rules, mode.origin_matching()).map_err(refusal)
}

fn read_rule(element: &Element) -> S3Result<Rule> {
    let max_age_seconds = match element.only_text("MaxAgeSeconds")? {
        None => None,
        Some(text) => Some(seconds(text).ok_or(ErrorCode::MalformedXML)?),
    };
    Ok(Rule {
        id: element.only_text("ID")?.map(str::to_owned),
        origins: texts(element, "AllowedOrigin"),
        methods: texts(element, "AllowedMethod"),
        allowed_headers: texts(element, "AllowedHeader"),
        expose_headers: texts(element, "ExposeHeader"),
        max_age_seconds,
    })
}

fn texts(element: &Element, name: &'static str) -> Vec<String> {
    element.children_named(name).map(|child| child.text().trim().to_owned()).collect()
}

/// Parses digits without a sign.
fn seconds(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Words an error as AWS does.
fn refusal(error: CorsError) -> S3Error {
    let problem = match error {
        CorsError::NoRules => return ErrorCode::MalformedXML.into(),
        CorsError::TooManyRules => {
            let message = "The number of CORS rules should not exceed allowed limit of 100 rules.";
            return S3Error::invalid_request(message);
        }
        CorsError::Rule { problem, .. } => problem,
    };
    let message = match problem {
        Problem::NoOrigin | Problem::NoMethod => return ErrorCode::MalformedXML.into(),
        Problem::Id => "The ID of a CORS rule has at most 255 characters.".to_owned(),
        Problem::Origin { text, why } => format!("AllowedOrigin \"{text}\" is not valid: {why}."),
        Problem::Method(text) => {
            format!("Found unsupported HTTP method in CORS config. Unsupported method is {text}")
        }
        Problem::Wildcards(text) => {
            format!("AllowedHeader \"{text}\" can not have more than one wildcard.")
        }
        Problem::ExposedWildcard(text) => format!(
            "ExposeHeader \"{text}\" contains wildcard. We currently do not support wildcard for ExposeHeader."
        ),
        Problem::Header { list: HeaderList::Allowed, text } => {
            format!("AllowedHeader \"{text}\" is not the name of a header.")
        }
        Problem::Header { list: HeaderList::Exposed, text } => {
            format!("ExposeHeader \"{text}\" is not the name of a header.")
        }
    };
    S3Error::invalid_request(message)
}

/// Writes the configuration as it was put.
pub(crate) fn document(rules: &Rules) -> XmlWriter {
    let mut xml = XmlWriter::with_capacity(512 * (1 + rules.rules().len()));
    xml.open_root("CORSConfiguration");
    for rule in rules.rules() {
        xml.open("CORSRule");
        if let Some(id) = &rule.id {
            xml.text("ID", id);
        }
        for (name, texts) in [
            ("AllowedHeader", &rule.allowed_headers),
            ("AllowedMethod", &rule.methods),
            ("AllowedOrigin", &rule.origins),
            ("ExposeHeader", &rule.expose_headers),
        ] {
            texts.iter().for_each(|text| xml.text(name, text));
        }
        if let Some(seconds) = rule.max_age_seconds {
            xml.value("MaxAgeSeconds", seconds);
        }
        xml.close("CORSRule");
    }
    xml.close("CORSConfiguration");
    xml
}

#[cfg(test)]
mod tests {
    use super::{document, read};
    use crate::compatibility::Compatibility;
    use crate::xml::reader::parse;
    use cairn_cors::Rules;

    const LEAST: &str = "<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>";

    fn configured(inner: &str) -> Result<Rules, &'static str> {
        let body = format!("<CORSConfiguration xmlns=\"urn:x\">{inner}</CORSConfiguration>");
        read(&parse(body.as_bytes()).expect(inner), Compatibility::Strict).map_err(|error| error.code())
    }

    fn rule(inner: &str) -> Result<Rules, &'static str> {
        configured(&format!("<CORSRule>{inner}</CORSRule>"))
    }

    #[test]
    fn configuration_is_written_as_it_was_read() {
        let full = "<CORSRule><ID>a &lt; b</ID><AllowedOrigin> https://A.example:443\n</AllowedOrigin>\
                    <AllowedOrigin>null</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>\
                    <AllowedMethod>HEAD</AllowedMethod><AllowedHeader>X-amz-*</AllowedHeader>\
                    <ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>3000</MaxAgeSeconds><Unknown/></CORSRule>";
        let rules = configured(&format!("{full}<CORSRule>{LEAST}</CORSRule>")).expect("valid");
        assert_eq!(rules.rules().len(), 2);
        let first = &rules.rules()[0];
        assert_eq!(first.origins, ["https://A.example:443", "null"]);
        assert_eq!((first.id.as_deref(), first.max_age_seconds), (Some("a < b"), Some(3000)));
        let written = document(&rules).finish();
        assert_eq!(
            read(&parse(&written).expect("well-formed"), Compatibility::Strict).expect("valid"),
            rules
        );
    }

    #[test]
    fn missing_and_repeated_elements_are_malformed() {
        for inner in ["", "<Other/>"] {
            assert_eq!(configured(inner), Err("MalformedXML"), "{inner}");
        }
        for inner in [
            "",
            "<AllowedOrigin>*</AllowedOrigin>",
            "<AllowedMethod>GET</AllowedMethod>",
            &format!("{LEAST}<MaxAgeSeconds>-1</MaxAgeSeconds>"),
            &format!("{LEAST}<MaxAgeSeconds>1</MaxAgeSeconds><MaxAgeSeconds>2</MaxAgeSeconds>"),
            &format!("{LEAST}<MaxAgeSeconds/>"),
            &format!("{LEAST}<MaxAgeSeconds>4294967296</MaxAgeSeconds>"),
        ] {
            assert_eq!(rule(inner), Err("MalformedXML"), "{inner}");
        }
    }

    #[test]
    fn values_that_are_not_allowed_are_invalid_requests() {
        for inner in [
            "<AllowedOrigin>https://*.example.com</AllowedOrigin>",
            "<AllowedOrigin>https://a.example/</AllowedOrigin>",
            "<AllowedMethod>OPTIONS</AllowedMethod>",
            "<AllowedMethod>get</AllowedMethod>",
            "<AllowedMethod/>",
            "<AllowedHeader>x-*-*</AllowedHeader>",
            "<AllowedHeader>a b</AllowedHeader>",
            "<AllowedHeader/>",
            "<ExposeHeader>*</ExposeHeader>",
            "<ExposeHeader>x:y</ExposeHeader>",
            &format!("<ID>{}</ID>", "i".repeat(256)),
        ] {
            assert_eq!(rule(&format!("{LEAST}{inner}")), Err("InvalidRequest"), "{inner}");
        }
        let rules = |count: usize| format!("<CORSRule>{LEAST}</CORSRule>").repeat(count);
        assert!(configured(&rules(100)).is_ok());
        assert_eq!(configured(&rules(101)), Err("InvalidRequest"));
    }
}
