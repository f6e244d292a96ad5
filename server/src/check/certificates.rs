//! The certificates: whether they can be used, and for how long.

use std::ops::Range;
use std::path::Path;

use super::Seen;
use crate::certificates::{ValidityFault, fault_of_validity, is_exposed, load_pair, unix_now};
use crate::config::{PairFiles, Settings};

const DAY_SECONDS: i64 = 86_400;
/// With fewer days left, whoever renews it has forgotten to.
const DAYS_LEFT_MIN: i64 = 14;

pub(super) fn data(settings: &Settings) -> Seen {
    certificate(settings.server.tls.s3.as_ref())
}

pub(super) fn management(settings: &Settings) -> Seen {
    certificate(settings.server.tls.api.as_ref())
}

fn certificate(files: Option<&PairFiles>) -> Seen {
    let Some(files) = files else { return Seen::ok("plain HTTP") };
    let pair = match load_pair(files) {
        Ok(pair) => pair,
        Err(error) => return Seen::refused(error),
    };
    let seen = judge_validity(&files.certificate, pair.validity(), unix_now());
    if !is_exposed(&files.key) {
        return seen;
    }
    let key = files.key.display();
    seen.and(Seen::warning(format!("every user of this host can read {key}"), format!("chmod o= {key}")))
}

/// `validity` is the first and the last second, and `now` a second, all since 1970.
fn judge_validity(certificate: &Path, validity: Option<Range<i64>>, now: i64) -> Seen {
    let shown = certificate.display();
    let Some(validity) = validity else {
        return Seen::ok(format!("{shown} can be used; it does not say for how long"));
    };
    let days = validity.end.saturating_sub(now) / DAY_SECONDS;
    const RENEW: &str = "renew it; the running service takes the new files without a restart";
    if let Some(fault) = fault_of_validity(&validity, now) {
        let mend = match fault {
            ValidityFault::Expired => RENEW,
            ValidityFault::NotYetValid => "check the host's clock, and when the certificate was made for",
        };
        Seen::failed(format!("{shown} {}", fault.text()), mend)
    } else if days < DAYS_LEFT_MIN {
        Seen::warning(format!("{shown} is valid for {days} more days"), RENEW)
    } else {
        Seen::ok(format!("{shown} is valid for {days} more days"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn a_certificate_that_clients_refuse_fails_and_one_that_ends_soon_is_warned_of() {
        const END: i64 = 400 * DAY_SECONDS;
        let verdict = |now| judge_validity(Path::new("c.pem"), Some(DAY_SECONDS..END), now).verdict;
        assert_eq!(verdict(DAY_SECONDS - 1), Verdict::Failed);
        assert_eq!(verdict(END - DAYS_LEFT_MIN * DAY_SECONDS), Verdict::Ok);
        assert_eq!(verdict(END - DAYS_LEFT_MIN * DAY_SECONDS + 1), Verdict::Warning);
        assert_eq!(verdict(END), Verdict::Warning);
        assert_eq!(verdict(END + 1), Verdict::Failed);
    }
}
