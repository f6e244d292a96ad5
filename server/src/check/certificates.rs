//! The certificates: whether they can be used, and for how long.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Seen;
use crate::certificates::{is_exposed, load_pair};
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
    let shown = files.certificate.display();
    if is_exposed(&files.key) {
        let key = files.key.display();
        let seen = format!("every user of this host can read {key}");
        return Seen::warning(seen, format!("chmod o= {key}"));
    }
    let Some(validity) = pair.validity() else {
        return Seen::ok(format!("{shown} can be used; it does not say for how long"));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let days = validity.end.saturating_sub(now) / DAY_SECONDS;
    const RENEW: &str = "renew it; the running service takes the new files without a restart";
    if now > validity.end {
        Seen::warning(format!("{shown} has expired: clients will refuse it"), RENEW)
    } else if now < validity.start {
        let mend = "check the host's clock, and when the certificate was made for";
        Seen::warning(format!("{shown} is not valid yet: clients will refuse it"), mend)
    } else if days < DAYS_LEFT_MIN {
        Seen::warning(format!("{shown} is valid for {days} more days"), RENEW)
    } else {
        Seen::ok(format!("{shown} is valid for {days} more days"))
    }
}
