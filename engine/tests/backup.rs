//! Backups of a held store have its moment, whatever is written.

use crate::support::{content, folder, get, key, name, options, put, until, with_engine, with_engine_on};
use cairn_engine::backup::{BackupFolder, Copied, HeldFolders, copy_into, restore, verify_backups};
use cairn_engine::{
    Bucket, BucketSettings, DeleteOptions, Engine, HoldRequest, HoldState, Origin, StoreOptions,
    WriteCondition,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Inline, one block, several blocks, and a check table.
const SIZES: [usize; 4] = [100, 20_000, 300_000, 17_000_000];
const OBJECTS: u64 = 24;
/// Rounds in which everything is overwritten: several times the space that a slice grows by.
const ROUNDS: u64 = 4;

fn size_of(number: u64) -> usize {
    // One large object.
    SIZES[if number == 7 { 3 } else { usize::try_from(number % 3).expect("small") }]
}

pub(super) async fn write_round(engine: &Rc<Engine>, bucket: &Arc<Bucket>, round: u64) {
    for number in 0..OBJECTS {
        let bytes = content(round * 1000 + number, size_of(number));
        put(engine, bucket, &key(&format!("k{number}")), &bytes, WriteCondition::default())
            .await
            .expect("puts");
    }
}

pub(super) async fn hold(engine: &Rc<Engine>) -> HeldFolders {
    let store = engine.store();
    let request =
        HoldRequest { timeout: Duration::from_secs(600), lease: None, principal: "a test".to_owned() };
    let begun = store.begin_hold(Vec::new(), request).expect("begins");
    until("the store is held", || store.hold().state != HoldState::Copying).await;
    assert_eq!(store.hold().state, HoldState::Held, "{:?}", store.hold());
    HeldFolders { data_dir: begun.data_dir, backup_dir: begun.backup_dir, hold_id: begun.id }
}

/// Copies a held store, without a signature.
pub(super) fn back_up(backups: &Path, held: &HeldFolders) -> Copied {
    let mut folder =
        BackupFolder::open_or_create(backups, &held.store_id().expect("held")).expect("a folder of backups");
    let copied = copy_into(&mut folder, held, &mut |_, _| true).expect("copies");
    let mut manifest = copied.manifest.clone();
    manifest.insert("store_id".to_owned(), held.store_id().expect("held").into());
    folder.commit(&copied.name, &json!({"payload": manifest})).expect("commits");
    copied
}

pub(super) async fn assert_round(engine: &Rc<Engine>, round: u64) {
    let bucket = engine.store().bucket(&name("backed-up")).expect("the bucket");
    for number in 0..OBJECTS {
        let expected = content(round * 1000 + number, size_of(number));
        let (_, found) =
            get(engine, &bucket, &key(&format!("k{number}")), 0..expected.len() as u64).await.expect("reads");
        assert!(found == expected, "k{number} of round {round}");
    }
}

/// Everything is overwritten several times while the store is held, and deleted. The backup has the moment of the hold.
#[test]
fn a_backup_shows_the_moment_of_the_hold() {
    for encryption_at_rest in [false, true] {
        let (data, backups, new) = (folder(), folder(), folder());
        let options = |folder: &Path| StoreOptions { encryption_at_rest, ..options(folder) };
        let place = backups.path().join("backups");
        let in_body = place.clone();
        with_engine_on(options(data.path()), move |engine| async move {
            let store = engine.store();
            let bucket =
                store.create_bucket(&name("backed-up"), BucketSettings::default(), Origin::default()).await;
            let bucket = bucket.expect("a bucket");
            write_round(&engine, &bucket, 1).await;
            let held = hold(&engine).await;
            for round in 2..2 + ROUNDS {
                write_round(&engine, &bucket, round).await;
            }
            for number in 0..OBJECTS / 2 {
                engine
                    .delete_object(&bucket, &key(&format!("k{number}")), DeleteOptions::default())
                    .await
                    .expect("deletes");
            }
            assert!(store.hold().held_bytes > ROUNDS * 17_000_000);
            let copied = back_up(&in_body, &held);
            assert_eq!((copied.damaged_count, copied.payloads), (0, OBJECTS / 3 * 2));
            assert_eq!(store.end_hold(None).expect("there is one").state, HoldState::Released);
            // The second one follows at once, and shares everything that is left.
            let held = hold(&engine).await;
            let second = back_up(&in_body, &held);
            assert_eq!(second.damaged_count, 0);
            assert!(second.payloads < copied.payloads);
            store.end_hold(None).expect("there is one");
            until("the kept space is free again", || !data_of(&held).join("backup").exists()).await;
        });
        let mut backups = BackupFolder::open(&place).expect("opens");
        let verified = verify_backups(&mut backups, &mut |_, _| true).expect("reads");
        assert!(verified.backups.iter().all(|(_, wrong)| wrong.is_none()), "{verified:?}");
        let first = backups.backups().expect("reads").remove(0);
        let data_dir = new.path().join("data");
        let restored = restore(&backups, &first, &data_dir, &mut |_, _| true).expect("restores");
        assert_eq!(restored.damaged_count, 0);
        with_engine_on(options(&data_dir), |engine| async move {
            assert_round(&engine, 1).await;
            assert_eq!(engine.store().inspect(u64::MAX).expect("reads").findings, []);
            let bucket = engine.store().bucket(&name("backed-up")).expect("the bucket");
            write_round(&engine, &bucket, 2).await;
            assert_round(&engine, 2).await;
        });
    }
}

fn data_of(held: &HeldFolders) -> &PathBuf {
    &held.data_dir
}

/// A client ends a hold before its thread has begun it, for example because it was interrupted. Nothing is kept for ever.
#[test]
fn a_hold_that_is_ended_at_once_keeps_nothing() {
    let data = folder();
    with_engine(data.path(), |engine| async move {
        let store = engine.store();
        let bucket =
            store.create_bucket(&name("backed-up"), BucketSettings::default(), Origin::default()).await;
        let bucket = bucket.expect("a bucket");
        write_round(&engine, &bucket, 1).await;
        let request =
            HoldRequest { timeout: Duration::from_secs(600), lease: None, principal: "a test".to_owned() };
        for _ in 0..20 {
            store.begin_hold(Vec::new(), request.clone()).expect("begins");
            store.end_hold(None).expect("there is one");
        }
        hold(&engine).await;
        store.end_hold(None).expect("there is one");
        // What is removed now would be kept by a hold that nobody has ended, and the next one would find it.
        write_round(&engine, &bucket, 2).await;
        hold(&engine).await;
        assert_eq!(store.hold().held_bytes, 0);
        store.end_hold(None).expect("there is one");
    });
}

/// The check of `a_backup_shows_the_moment_of_the_hold` can fail: once the hold has ended, the space is used again, and a
/// backup finds that out.
#[test]
fn a_copy_after_the_end_of_the_hold_is_found_to_be_damaged() {
    let (data, kept) = (folder(), folder());
    let kept = kept.path().to_owned();
    with_engine(data.path(), move |engine| async move {
        let store = engine.store();
        let bucket =
            store.create_bucket(&name("backed-up"), BucketSettings::default(), Origin::default()).await;
        let bucket = bucket.expect("a bucket");
        write_round(&engine, &bucket, 1).await;
        let held = hold(&engine).await;
        let late = HeldFolders { backup_dir: kept.join("metadata"), ..held.clone() };
        let copied =
            std::process::Command::new("cp").arg("-a").args([&held.backup_dir, &late.backup_dir]).status();
        assert!(copied.expect("runs").success());
        assert_eq!(store.end_hold(Some("other")), None);
        store.end_hold(None).expect("there is one");
        until("the kept space is free again", || !held.backup_dir.exists()).await;
        for round in 2..2 + ROUNDS {
            write_round(&engine, &bucket, round).await;
        }
        let copied = back_up(&kept.join("backups"), &late);
        assert!(copied.damaged_count > 0);
        assert!(copied.damaged[0].contains("a block is not what was written"), "{:?}", copied.damaged);
        // What is damaged is missing, so that nobody takes it for whole, and the next backup tries again.
        let mut backups = BackupFolder::open(&kept.join("backups")).expect("opens");
        let verified = verify_backups(&mut backups, &mut |_, _| true).expect("reads");
        let missing = format!("{} of its pages and payloads are missing or damaged", copied.damaged_count);
        assert_eq!(verified.backups, [(copied.name, Some(missing))]);
    });
}
