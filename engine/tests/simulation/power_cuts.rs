//! A short campaign of simulated power cuts, with planted mistakes.
//!
//! Each planted mistake must be found.
//!
//! `CAIRN_CUTS` and `CAIRN_CUT_SEED` set the number of power cuts and the seed. The example `cut_campaign` runs long campaigns.

use cairn_engine::simulation::ViolationKind::{
    self, ChangeFailed, EventMismatch, InspectionMismatch, LockIgnored, OpenFailed, ReadFailed,
    StateMismatch, StoreDoesNotOpen, UsageMismatch,
};
use cairn_engine::simulation::campaign::{CampaignOptions, CampaignReport, run};
use cairn_engine::simulation::{Effect, Fault, Flaw, Operation};

/// Power cuts within which every mistake must be found.
const CUTS_TO_FIND_A_FLAW: u64 = 12_000;
const EIO: i32 = 5;

fn campaign(cuts: u64, seed: u64, flaw: Option<Flaw>, faults: &[Fault]) -> CampaignReport {
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let options =
        CampaignOptions { folder: folder.path().to_owned(), cuts, seed, flaw, faults: faults.to_vec() };
    run(&options).expect("the campaign runs")
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn power_cuts_lose_and_tear_nothing() {
    let cuts = from_environment("CAIRN_CUTS", 1500);
    let report = campaign(cuts, from_environment("CAIRN_CUT_SEED", 1), None, &[]);
    assert_eq!(report.violation, None);
    assert_eq!(report.cuts, cuts);
    // The campaign did what it is for.
    assert!(report.acknowledged > 0 && report.torn > 0 && report.reads > 0, "{report:?}");
    assert!(report.flushes > 0 && report.growths > 0 && report.punches > 0, "{report:?}");
}

#[test]
fn same_seed_gives_the_same_campaign() {
    assert_eq!(campaign(400, 5, None, &[]), campaign(400, 5, None, &[]));
}

/// Runs a campaign with a mistake, which must find a violation of one of these kinds.
fn must_find(flaw: Option<Flaw>, faults: &[Fault], expected: &[ViolationKind]) {
    let report = campaign(CUTS_TO_FIND_A_FLAW, from_environment("CAIRN_CUT_SEED", 2), flaw, faults);
    let Some(violation) = &report.violation else { panic!("nothing was found: {report:?}") };
    assert!(expected.contains(&violation.kind), "{violation}");
}

/// Every such operation has this effect.
fn always(operation: Operation, effect: Effect) -> [Fault; 1] {
    [Fault { operation, skip: 0, times: u64::MAX, effect }]
}

#[test]
fn flush_without_effect_is_found() {
    must_find(None, &always(Operation::Flush, Effect::Lie), &[ReadFailed]);
}

#[test]
fn flush_before_its_writes_complete_is_found() {
    must_find(None, &always(Operation::Write, Effect::Lie), &[ReadFailed]);
}

#[test]
fn unflushed_name_of_a_volume_is_found() {
    must_find(None, &always(Operation::SyncFolder, Effect::Lie), &[StoreDoesNotOpen]);
}

#[test]
fn acknowledgement_before_the_commit_is_found() {
    must_find(Some(Flaw::AnswerBeforeCommit), &[], &[StateMismatch]);
}

#[test]
fn space_reused_before_its_removal_commits_is_found() {
    must_find(Some(Flaw::ReleaseBeforeCommit), &[], &[ReadFailed]);
}

#[test]
fn space_reused_while_it_is_read_is_found() {
    must_find(Some(Flaw::ReleaseDespiteReaders), &[], &[ReadFailed]);
}

#[test]
fn space_marked_as_used_after_removal_is_found() {
    must_find(Some(Flaw::KeepRemovedMarked), &[], &[InspectionMismatch, ChangeFailed]);
}

#[test]
fn acknowledgement_after_a_failed_flush_is_found() {
    let faults = always(Operation::Flush, Effect::Error(EIO));
    must_find(Some(Flaw::IgnoreFailedFlush), &faults, &[ReadFailed]);
}

#[test]
fn completion_that_drops_the_wrong_part_is_found() {
    must_find(Some(Flaw::DropNamedPart), &[], &[OpenFailed, InspectionMismatch, ChangeFailed]);
}

#[test]
fn parts_counted_after_completion_are_found() {
    must_find(Some(Flaw::CountAssembledParts), &[], &[UsageMismatch]);
}

#[test]
fn space_of_parts_reused_while_they_are_read_is_found() {
    must_find(Some(Flaw::ReleasePartsDespiteReaders), &[], &[ReadFailed]);
}

#[test]
fn unrecorded_null_version_is_found() {
    must_find(Some(Flaw::ForgetNullVersions), &[], &[StateMismatch, InspectionMismatch, OpenFailed]);
}

#[test]
fn surplus_entry_of_a_due_index_is_found() {
    must_find(Some(Flaw::KeepDueEntries), &[], &[InspectionMismatch]);
}

#[test]
fn rule_that_ignores_tags_is_found() {
    must_find(Some(Flaw::IgnoreRuleTags), &[], &[StateMismatch]);
}

#[test]
fn missing_event_of_a_deletion_is_found() {
    must_find(Some(Flaw::ForgetEvents), &[], &[EventMismatch]);
}

#[test]
fn removal_of_a_locked_version_is_found() {
    must_find(Some(Flaw::RemoveLocked), &[], &[LockIgnored]);
}
