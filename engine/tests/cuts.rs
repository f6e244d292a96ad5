//! A slice of the campaign of simulated power cuts, and proof that it finds mistakes: each one is made on purpose, and must not
//! survive a short campaign. Needs the feature `simulation`.
//!
//! `CAIRN_CUTS` and `CAIRN_CUT_SEED` make the slice longer or another; `cut_campaign` is the long form.

use cairn_engine::simulation::Flaw;
use cairn_engine::simulation::campaign::{CampaignOptions, CampaignReport, run};
use cairn_engine::simulation::disk::{Effect, Fault, Operation};

/// Cuts within which every mistake must be found.
const CUTS_TO_FIND_A_FLAW: u64 = 4000;

fn campaign(cuts: u64, seed: u64, flaw: Option<Flaw>, faults: &[Fault]) -> CampaignReport {
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder");
    let options =
        CampaignOptions { folder: folder.path().to_owned(), cuts, seed, flaw, faults: faults.to_vec() };
    run(&options).expect("the campaign runs")
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_power_cut_loses_nothing_acknowledged_and_leaves_nothing_torn() {
    let cuts = from_environment("CAIRN_CUTS", 1500);
    let report = campaign(cuts, from_environment("CAIRN_CUT_SEED", 1), None, &[]);
    assert_eq!(report.finding, None);
    assert_eq!(report.cuts, cuts);
    assert!(report.acknowledged > 0 && report.torn > 0 && report.reads > 0, "{report:?}");
    assert!(report.flushes > 0 && report.growths > 0 && report.punches > 0, "{report:?}");
}

#[test]
fn the_same_seed_gives_the_same_campaign() {
    let [first, second] = [(), ()].map(|()| campaign(400, 5, None, &[]));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
}

fn finds(flaw: Option<Flaw>, faults: &[Fault], expected: &[&str]) {
    let report = campaign(CUTS_TO_FIND_A_FLAW, from_environment("CAIRN_CUT_SEED", 2), flaw, faults);
    let what = format!("{report:?}");
    let finding = report.finding.expect(&what);
    assert!(expected.iter().any(|what| finding.contains(what)), "{finding}");
}

/// From the first such operation after the store has been made.
fn always(operation: Operation, effect: Effect) -> [Fault; 1] {
    [Fault { operation, skip: 0, times: u64::MAX, effect }]
}

#[test]
fn the_campaign_finds_a_commit_without_a_flush() {
    finds(None, &always(Operation::Flush, Effect::Lie), &["cannot be read"]);
}

#[test]
fn the_campaign_finds_a_flush_that_does_not_wait_for_its_writes() {
    finds(None, &always(Operation::Write, Effect::Lie), &["cannot be read"]);
}

#[test]
fn the_campaign_finds_a_volume_whose_name_was_not_flushed() {
    finds(None, &always(Operation::SyncFolder, Effect::Lie), &["does not open"]);
}

#[test]
fn the_campaign_finds_an_answer_before_the_commit() {
    finds(Some(Flaw::AnswerBeforeCommit), &[], &["holds", "was put"]);
}

#[test]
fn the_campaign_finds_space_that_is_handed_out_before_its_removal_is_committed() {
    finds(Some(Flaw::ReleaseBeforeCommit), &[], &["cannot be read"]);
}

#[test]
fn the_campaign_finds_space_that_is_handed_out_while_it_is_read() {
    finds(Some(Flaw::ReleaseDespiteReaders), &[], &["cannot be read"]);
}

#[test]
fn the_campaign_finds_space_that_stays_marked_when_its_object_goes() {
    finds(Some(Flaw::KeepRemovedMarked), &[], &["the inspection finds", "free twice"]);
}

#[test]
fn the_campaign_finds_an_acknowledgement_that_rests_on_a_failed_flush() {
    let faults = always(Operation::Flush, Effect::Error(5));
    finds(Some(Flaw::IgnoreFailedFlush), &faults, &["cannot be read"]);
}

#[test]
fn the_campaign_finds_a_completion_that_drops_the_wrong_part() {
    finds(Some(Flaw::DropNamedPart), &[], &["cannot be opened", "the inspection finds", "a change of"]);
}

#[test]
fn the_campaign_finds_parts_that_stay_counted_when_they_are_an_object() {
    finds(Some(Flaw::CountAssembledParts), &[], &["usage of"]);
}

#[test]
fn the_campaign_finds_space_of_parts_that_is_handed_out_while_they_are_read() {
    finds(Some(Flaw::ReleasePartsDespiteReaders), &[], &["cannot be read"]);
}

#[test]
fn the_campaign_finds_null_versions_that_nobody_knows_the_place_of() {
    finds(Some(Flaw::ForgetNullVersions), &[], &["holds", "NullVersionMismatch", "cannot be opened"]);
}

#[test]
fn the_campaign_finds_a_locked_version_that_is_removed() {
    finds(Some(Flaw::RemoveLocked), &[], &["the removal of a locked version"]);
}
