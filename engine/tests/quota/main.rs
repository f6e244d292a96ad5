//! A slice of the campaign at the edge of quotas. `CAIRN_QUOTA_OPERATIONS` and `CAIRN_QUOTA_SEED` make it longer or another;
//! `quota_campaign` is the long form.

mod campaign;

use campaign::{CampaignOptions, run};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_limit_is_ever_passed_and_no_counter_drifts() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let operations = from_environment("CAIRN_QUOTA_OPERATIONS", 12_000);
    let report = run(&CampaignOptions {
        folder: folder.path().to_owned(),
        operations,
        round: operations.div_ceil(3),
        seed: from_environment("CAIRN_QUOTA_SEED", 1),
        slices: 3,
        executors: 2,
        tasks: 48,
    });
    assert_eq!(report.finding, None);
    assert_eq!((report.operations, report.drift_objects, report.drift_bytes), (operations, 0, 0));
    // At the edge: neither is everything refused nor everything taken.
    assert!(report.refused > operations / 100 && report.refused < operations / 2, "{report:?}");
    assert!(report.kept > 0, "{report:?}");
    assert!(report.limits_refused > 0 && report.limits_refused < report.limits_set, "{report:?}");
    assert!(report.looks > operations / 2 && report.comparisons == 18, "{report:?}");
}
