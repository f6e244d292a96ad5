//! Checks the certificates: whether they can be used, for how long they are valid, and whether there are authorities.

use std::ops::Range;
use std::path::Path;

use super::Finding;
use crate::certificates::{ValidityFault, fault_of_validity, is_exposed, load_pair, unix_now};
use crate::config::{PairFiles, Settings};

const DAY_SECONDS: i64 = 86_400;
/// With fewer days left, automatic renewal has probably failed.
const DAYS_LEFT_MIN: i64 = 14;

/// Checks the authorities of outgoing requests. The service starts without them, because it may make no such requests.
pub(super) fn authorities() -> Finding {
    match cairn_trust::count_host_authorities() {
        Ok(count) => Finding::ok(format!("{count} certificate authorities for outgoing requests")),
        Err(reason) => Finding::warning(
            format!(
                "there are no certificate authorities ({reason}), so webhooks and OpenID providers with https fail"
            ),
            "install ca-certificates, or set SSL_CERT_FILE to a PEM file with the authorities",
        ),
    }
}

pub(super) fn data(settings: &Settings) -> Finding {
    certificate(settings.server.tls.s3.as_ref())
}

pub(super) fn management(settings: &Settings) -> Finding {
    certificate(settings.server.tls.api.as_ref())
}

pub(super) fn console(settings: &Settings) -> Finding {
    match settings.server.console_bind {
        Some(_) => certificate(settings.server.tls.console.as_ref()),
        None => Finding::ok("off"),
    }
}

fn certificate(files: Option<&PairFiles>) -> Finding {
    let Some(files) = files else { return Finding::ok("plain HTTP") };
    let pair = match load_pair(files) {
        Ok(pair) => pair,
        Err(error) => return Finding::refused(error),
    };
    let finding = judge_validity(&files.certificate, pair.validity(), unix_now());
    if !is_exposed(&files.key) {
        return finding;
    }
    let key = files.key.display();
    finding.and(Finding::warning(
        format!("{key} is readable by every user of this host"),
        format!("chmod o= {key}"),
    ))
}

/// Judges a validity period at `now`. All times are seconds since 1970; the period includes both ends.
fn judge_validity(certificate: &Path, validity: Option<Range<i64>>, now: i64) -> Finding {
    let shown = certificate.display();
    let Some(validity) = validity else {
        return Finding::ok(format!("{shown} can be used; its validity period is unknown"));
    };
    let days = validity.end.saturating_sub(now) / DAY_SECONDS;
    const RENEW: &str = "renew it; a running service loads the new files without a restart";
    if let Some(fault) = fault_of_validity(&validity, now) {
        let fix = match fault {
            ValidityFault::Expired => RENEW,
            ValidityFault::NotYetValid => "check the host's clock and the certificate's validity period",
        };
        Finding::failed(format!("{shown} {}", fault.text()), fix)
    } else if days < DAYS_LEFT_MIN {
        Finding::warning(format!("{shown} is valid for {days} more days"), RENEW)
    } else {
        Finding::ok(format!("{shown} is valid for {days} more days"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn an_invalid_certificate_fails_and_one_about_to_expire_warns() {
        const END: i64 = 400 * DAY_SECONDS;
        let verdict = |now| judge_validity(Path::new("c.pem"), Some(DAY_SECONDS..END), now).verdict;
        assert_eq!(verdict(DAY_SECONDS - 1), Verdict::Failed);
        assert_eq!(verdict(END - DAYS_LEFT_MIN * DAY_SECONDS), Verdict::Ok);
        assert_eq!(verdict(END - DAYS_LEFT_MIN * DAY_SECONDS + 1), Verdict::Warning);
        assert_eq!(verdict(END), Verdict::Warning);
        assert_eq!(verdict(END + 1), Verdict::Failed);
    }
}
