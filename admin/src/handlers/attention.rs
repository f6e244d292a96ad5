//! The routes of what needs attention: facts that have no other route, and what is dismissed for a day.

use cairn_api::{Attention, CertificateExpiry, DismissAttention, DismissedAttention, Time};
use cairn_model::{Clock, SystemClock, Timestamp};
use http::StatusCode;

use crate::call::Call;
use crate::error::AdminError;
use crate::handlers::metrics::history_of;
use crate::metrics::Dismissal;
use crate::reply::Reply;

/// The longest dismissal, and the default one.
const DISMISSED_SECONDS_MAX: u64 = 86_400;
/// Longest name of something that is dismissed, in bytes. The console's have the id of a webhook or the name of a bucket.
const SUBJECT_BYTES_MAX: usize = 256;

fn body(dismissal: Dismissal) -> DismissedAttention {
    DismissedAttention { subject: dismissal.subject, until: dismissal.until.into(), by: dismissal.by }
}

/// `GET /api/v1/attention`.
pub(crate) async fn get(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let (history, store) = (history_of(&call)?, call.store()?);
    let certificates = call.context.metrics.certificates().into_iter().filter_map(|certificate| {
        let expires_at = Timestamp(certificate.not_after?.checked_mul(1000)?);
        let plane = certificate.plane.name().to_owned();
        Some(CertificateExpiry { plane, expires_at: expires_at.into(), refused: certificate.is_refused })
    });
    let attention = Attention {
        dismissed: history.dismissals(SystemClock.now()).into_iter().map(body).collect(),
        backups: history.backups(store).into_iter().map(Time::from).collect(),
        certificates: certificates.collect(),
    };
    Reply::json(StatusCode::OK, &attention)
}

/// `POST /api/v1/attention/dismissals`.
pub(crate) async fn dismiss(mut call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let DismissAttention { subject, seconds } = call.json().await?;
    if subject.is_empty() || subject.len() > SUBJECT_BYTES_MAX || subject.chars().any(char::is_control) {
        let message = format!("subject must have 1 to {SUBJECT_BYTES_MAX} bytes without control characters");
        return Err(AdminError::invalid(message));
    }
    let seconds = seconds.unwrap_or(DISMISSED_SECONDS_MAX);
    if seconds > DISMISSED_SECONDS_MAX {
        return Err(AdminError::invalid(format!("seconds must be 0 to {DISMISSED_SECONDS_MAX}")));
    }
    let now = SystemClock.now();
    let until = Timestamp(now.0.saturating_add(seconds * 1000));
    let by = call.caller()?.principal.clone();
    let dismissal = Dismissal { subject: subject.clone(), until, by };
    let answer = body(dismissal.clone());
    history_of(&call)?.dismiss(dismissal, now).map_err(|_| {
        AdminError::TooManyRequests(
            "as many things are dismissed as can be; they come back within a day".into(),
        )
    })?;
    let detail =
        if seconds == 0 { "shown again".to_owned() } else { format!("not shown until {}", answer.until) };
    Ok(Reply::json(StatusCode::OK, &answer)?.resource(subject).detail(detail))
}
