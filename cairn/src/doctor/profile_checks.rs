//! Says which settings of a profile are wrong, and the fix.

use super::check::{Checked, Verdict};
use super::clients::Mode;
use super::profile::{Profile, Setting};
use crate::s3::endpoint::Endpoint;

/// Most bytes of an object in one request, 5 GiB.
const ONE_REQUEST_BYTES_MAX: u64 = 5 << 30;

/// Returns one check for each setting that matters.
pub(crate) fn checks(
    profile: &Profile,
    endpoint: &Endpoint,
    mode: Option<Mode>,
    has_virtual_hosts: bool,
) -> Vec<Checked> {
    let is_strict = mode.unwrap_or(Mode::Strict) == Mode::Strict;
    let mut found = vec![endpoint_url(profile, endpoint), region(profile)];
    found.push(addressing_style(profile, has_virtual_hosts));
    found.push(signature_version(profile, is_strict));
    found.push(checksums(profile, is_strict && endpoint.has_tls()));
    found.extend(multipart_threshold(profile, is_strict));
    found.extend(session_token(profile));
    for name in [
        "s3.use_accelerate_endpoint",
        "s3.use_dualstack_endpoint",
        "use_dualstack_endpoint",
        "use_fips_endpoint",
    ] {
        let is_on = profile.value(name).is_some_and(|setting| setting.value.eq_ignore_ascii_case("true"));
        if is_on {
            let wrong =
                Checked::failed("endpoint_url", format!("{name} = true sends requests to hosts of AWS"));
            found.push(wrong.fix(format!("Remove {name} from {}.", profile.config_file.display())));
        }
    }
    found
}

/// Returns where a line belongs.
fn place(profile: &Profile) -> String {
    let section = if profile.name == "default" {
        "[default]".to_owned()
    } else {
        format!("[profile {}]", profile.name)
    };
    format!("below {section} in {}", profile.config_file.display())
}

fn endpoint_url(profile: &Profile, endpoint: &Endpoint) -> Checked {
    const NAME: &str = "endpoint_url";
    let fix = format!("Write endpoint_url = {} {}.", endpoint.url(), place(profile));
    match profile.endpoint() {
        None => Checked::failed(NAME, "the profile has none, so clients send requests to AWS").fix(fix),
        Some(Setting { value, place }) => match value.parse::<Endpoint>() {
            Err(why) => Checked::failed(NAME, format!("{place} is {value}: {why}")).fix(fix),
            Ok(own) if own == *endpoint => Checked::ok(NAME, format!("{place} is {}", own.url())),
            Ok(own) => Checked::failed(
                NAME,
                format!("{place} is {}, but --endpoint is {}", own.url(), endpoint.url()),
            )
            .fix(fix),
        },
    }
}

fn region(profile: &Profile) -> Checked {
    const NAME: &str = "region";
    match profile.setting(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region") {
        Some(Setting { value, place }) if value == "us-east-1" => {
            Checked::ok(NAME, format!("{place} is {value}"))
        }
        Some(Setting { value, place }) => Checked::ok(
            NAME,
            format!(
                "{place} is {value}: the server accepts every region, and says that its own is us-east-1"
            ),
        ),
        None => {
            Checked::new(NAME, Verdict::Note, "the profile has none, and some SDKs refuse to work without")
                .fix(format!("Write region = us-east-1 {}.", place(profile)))
        }
    }
}

fn addressing_style(profile: &Profile, has_virtual_hosts: bool) -> Checked {
    const NAME: &str = "addressing_style";
    let fix = format!("Write s3 = and, indented below it, addressing_style = path {}.", place(profile));
    let style = profile.value("s3.addressing_style").map(|setting| setting.value);
    match style.as_deref() {
        Some("path") => Checked::ok(NAME, "s3.addressing_style is path"),
        Some("virtual") if has_virtual_hosts => {
            Checked::ok(NAME, "s3.addressing_style is virtual, which works here")
        }
        Some("virtual") => Checked::failed(
            NAME,
            "s3.addressing_style is virtual, and the server answers no buckets in host names",
        )
        .fix(fix),
        None | Some("auto") => Checked::new(
            NAME,
            Verdict::Note,
            "not set: the AWS CLI and boto3 use path style here; other SDKs need it in their code",
        )
        .fix(fix),
        Some(other) => {
            Checked::failed(NAME, format!("s3.addressing_style is {other}, which does not exist")).fix(fix)
        }
    }
}

fn signature_version(profile: &Profile, is_strict: bool) -> Checked {
    const NAME: &str = "signature_version";
    let fix = format!("Write s3 = and, indented below it, signature_version = s3v4 {}.", place(profile));
    let version = profile.value("s3.signature_version").map(|setting| setting.value);
    match version.as_deref() {
        Some("s3v4") => Checked::ok(NAME, "s3.signature_version is s3v4"),
        None if !is_strict => Checked::ok(
            NAME,
            "not set: boto3 and the AWS CLI 1 presign URLs with version 2, which works unless s3.signature_v2 is false",
        ),
        None => Checked::new(
            NAME,
            Verdict::Note,
            "not set: boto3 and the AWS CLI 1 presign URLs with version 2, which is refused",
        )
        .fix(fix),
        Some(other) => {
            Checked::failed(NAME, format!("s3.signature_version is {other}; the server implements s3v4 only"))
                .fix(fix)
        }
    }
}

fn checksums(profile: &Profile, are_refused: bool) -> Checked {
    const NAME: &str = "request_checksum_calculation";
    let found = profile.setting(&["AWS_REQUEST_CHECKSUM_CALCULATION"], NAME);
    let fix = format!(
        "Write request_checksum_calculation = when_required {}, or set s3.compatibility = \"extended\" on the server.",
        place(profile)
    );
    let said = found
        .as_ref()
        .map_or_else(|| "not set".to_owned(), |Setting { value, place }| format!("{place} is {value}"));
    match found.map(|setting| setting.value.to_ascii_lowercase()).as_deref() {
        Some("when_required") => Checked::ok(NAME, said),
        None | Some("when_supported") if are_refused => Checked::failed(
            NAME,
            format!("{said}: SDKs then send a checksum after the body over TLS, which this server refuses"),
        )
        .fix(fix),
        None | Some("when_supported") => Checked::ok(NAME, format!("{said}: the default works here")),
        Some(_) => Checked::failed(NAME, format!("{said}, which does not exist")).fix(fix),
    }
}

fn multipart_threshold(profile: &Profile, is_strict: bool) -> Option<Checked> {
    const NAME: &str = "multipart_threshold";
    let found = profile.value("s3.multipart_threshold");
    let bytes = found.as_ref().and_then(|setting| bytes(&setting.value));
    match (found, bytes) {
        (Some(Setting { value, .. }), None) => Some(
            Checked::failed(NAME, format!("s3.multipart_threshold is {value}, which is not a size"))
                .fix("Write a size such as 8MB."),
        ),
        (Some(Setting { value, .. }), Some(bytes)) if bytes > ONE_REQUEST_BYTES_MAX => Some(
            Checked::failed(
                NAME,
                format!("s3.multipart_threshold is {value}, but one request takes 5 GB at most"),
            )
            .fix("Write s3.multipart_threshold = 5GB, or less."),
        ),
        (None, _) if is_strict => Some(
            Checked::new(
                NAME,
                Verdict::Note,
                "not set: copies of 8 MiB and more within the store are refused in the strict mode",
            )
            .fix(format!(
                "For such copies, write s3 = and, indented below it, multipart_threshold = 5GB {}.",
                place(profile)
            )),
        ),
        _ => None,
    }
}

/// Parses a size as the AWS CLI does: powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let units =
        [("tib", 40), ("gib", 30), ("mib", 20), ("kib", 10), ("tb", 40), ("gb", 30), ("mb", 20), ("kb", 10)];
    let (digits, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text.as_str(), 0));
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn session_token(profile: &Profile) -> Option<Checked> {
    profile.has_session_token().then(|| {
        Checked::failed(
            "aws_session_token",
            "a session token is set, and the server refuses all requests with one",
        )
        .fix(format!(
            "Remove aws_session_token from {} and AWS_SESSION_TOKEN from the environment.",
            profile.credentials_file.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_aws_cli() {
        for (text, expected) in [
            ("5GB", Some(5 << 30)),
            ("8 mib", Some(8 << 20)),
            ("8388608", Some(8 << 20)),
            ("16KB", Some(16 << 10)),
            ("many", None),
            ("99999999999TB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
