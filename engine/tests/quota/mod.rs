//! A short campaign against quotas. `CAIRN_QUOTA_OPERATIONS` and `CAIRN_QUOTA_SEED` set its length and seed. The example
//! `quota_campaign` runs long campaigns.

mod campaign;

use self::campaign::{CampaignOptions, run};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn quotas_are_never_exceeded_and_counters_never_drift() {
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
    assert_eq!(report.violation, None);
    assert_eq!((report.operations, report.drift_objects, report.drift_bytes), (operations, 0, 0));
    // The campaign worked around the limits: some changes were refused and some accepted, and both were checked.
    assert!(report.refused > 0 && report.refused < operations, "{report:?}");
    assert!(report.refused_removals > 0, "{report:?}");
    assert!(report.limits_refused > 0 && report.limits_refused < report.limits_set, "{report:?}");
    assert!(report.limit_checks > 0 && report.comparisons > 0, "{report:?}");
}
