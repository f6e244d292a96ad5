//! The samples of the metrics of shares and embeds.

use cairn_observe::MetricValue::Whole;
use cairn_observe::Sample;
use cairn_sharing::{DeniedReason, LinkKind, LinkMetrics};

/// Returns one sample for each kind of links.
fn by_kind(counts: [u64; LinkKind::ALL.len()]) -> Vec<Sample> {
    let kinds = LinkKind::ALL.into_iter().zip(counts);
    kinds.map(|(kind, count)| Sample::labelled("kind", kind.name(), Whole(count))).collect()
}

/// Returns how many links exist, by kind.
pub(super) fn links(now: &LinkMetrics) -> Vec<Sample> {
    by_kind(now.links)
}

/// Returns how many downloads were counted, by kind.
pub(super) fn downloads(now: &LinkMetrics) -> Vec<Sample> {
    by_kind(now.downloads)
}

/// Returns the number of passwords that were sent, by outcome.
pub(super) fn unlock_attempts(now: &LinkMetrics) -> Vec<Sample> {
    let LinkMetrics { unlocked, wrong_passwords, refused_attempts, .. } = *now;
    let results = [("unlocked", unlocked), ("wrong", wrong_passwords), ("refused", refused_attempts)];
    results.map(|(result, count)| Sample::labelled("result", result, Whole(count))).into()
}

/// Returns how many requests were denied, by kind and reason. Reasons that have not occurred for a kind are zero.
pub(super) fn denied(now: &LinkMetrics) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (kind, counts) in LinkKind::ALL.into_iter().zip(now.denied) {
        for (reason, count) in DeniedReason::ALL.into_iter().zip(counts) {
            let labels = vec![("kind", kind.name().to_owned()), ("reason", reason.name().to_owned())];
            samples.push(Sample { labels, value: Whole(count) });
        }
    }
    samples
}
