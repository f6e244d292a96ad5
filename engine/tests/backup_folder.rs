//! Folders of backups: damage in them, and the folders that a backup is restored into.

use crate::backup::{assert_round, back_up, hold, write_round};
use crate::support::{folder, name, options, with_engine};
use cairn_engine::backup::{BackupFolder, Copied, Verified, prune, restore, verify_backups};
use cairn_engine::{BucketSettings, Engine, Origin, Store};
use sha2::{Digest as _, Sha256};
use std::fs::{create_dir, create_dir_all, read, read_dir, remove_dir, remove_file, write};
use std::path::Path;
use std::rc::Rc;

/// Backs up a store, whose bucket has one round of writes more for each backup, if `are_new`. Calls `between` with the number of
/// each backup before it.
fn back_up_often(
    data: &Path,
    place: &Path,
    count: u64,
    mut between: impl FnMut(u64, &Path) + Send + 'static,
) -> Vec<Copied> {
    let (sender, copied) = std::sync::mpsc::channel();
    let place = place.to_owned();
    with_engine(data, move |engine| async move {
        let bucket = name("backed-up");
        let created = engine.store().create_bucket(&bucket, BucketSettings::default(), Origin::default());
        let bucket = created.await.expect("a bucket");
        for number in 0..count {
            // The last one has nothing new.
            if number + 1 < count || number == 0 {
                write_round(&engine, &bucket, number).await;
            }
            between(number, &place);
            sender.send(back_up_now(&engine, &place).await).expect("sends");
        }
    });
    copied.iter().collect()
}

async fn back_up_now(engine: &Rc<Engine>, place: &Path) -> Copied {
    let held = hold(engine).await;
    let copied = back_up(place, &held);
    engine.store().end_hold(None).expect("there is one");
    crate::support::until("the folder is removed", || !held.backup_dir.exists()).await;
    copied
}

fn verify(place: &Path) -> Verified {
    let mut backups = BackupFolder::open(place).expect("opens");
    verify_backups(&mut backups, &mut |_, _| true).expect("reads")
}

/// Returns which backups are whole, the oldest first.
fn whole(verified: &Verified) -> Vec<bool> {
    verified.backups.iter().map(|(_, reason)| reason.is_none()).collect()
}

/// Changes the byte in the middle of a file.
fn damage(path: &Path) {
    let mut bytes = read(path).expect("reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    write(path, bytes).expect("writes");
}

/// Later backups shared what was damaged in the folder, and nobody noticed before a restoration.
#[test]
fn what_is_damaged_is_written_again_by_the_next_backup() {
    let (data, backups, new) = (folder(), folder(), folder());
    let place = backups.path().join("backups");
    let made = back_up_often(data.path(), &place, 3, |number, place| {
        if number == 2 {
            damage(&place.join("packs/000002.pack"));
            let verified = verify(place);
            assert_eq!((whole(&verified), verified.damaged), (vec![true, false], 1));
            assert!(verified.is_noted);
        }
    });
    assert!(made[2].new_bytes > 17_000_000, "the large object is copied again");
    // The second one finds the copy. The damaged bytes beside it were counted for ever.
    let verified = verify(&place);
    assert_eq!((whole(&verified), verified.damaged), (vec![true, true, true], 0));
    let opened = BackupFolder::open(&place).expect("opens");
    let second = opened.backup(Some(&made[1].name)).expect("it is there");
    let data_dir = new.path().join("data");
    let restored = restore(&opened, &second, &data_dir, &mut |_, _| true).expect("restores");
    assert_eq!(restored.damaged_count, 0);
    with_engine(&data_dir, |engine| async move { assert_round(&engine, 1).await });
    // What is no longer damaged is no longer noted.
    drop(opened);
    damage(&place.join("packs/000002.pack"));
    assert_eq!(verify(&place).damaged, 0);
    assert!(!place.join("packs/000002.damaged").exists());
    // No backup needs it, but the next one would take it for whole if it could not be noted.
    damage(&place.join("packs/000002.pack"));
    let in_the_way = place.join("packs/000002.new");
    create_dir(&in_the_way).expect("a folder");
    let verified = verify(&place);
    assert_eq!((whole(&verified), verified.damaged, verified.is_noted), (vec![true, true, true], 1, false));
    remove_dir(&in_the_way).expect("removes");
    let verified = verify(&place);
    assert_eq!((verified.damaged, verified.is_noted), (0, true));
}

/// A missing pack ended the verification, and nobody learned which backups were hit.
#[test]
fn all_that_was_in_a_missing_pack_is_damaged() {
    let (data, backups, new) = (folder(), folder(), folder());
    let place = backups.path().join("backups");
    let made = back_up_often(data.path(), &place, 3, |_, _| {});
    remove_file(place.join("packs/000002.pack")).expect("removes");
    let verified = verify(&place);
    assert_eq!(whole(&verified), [true, false, false]);
    assert!(verified.damaged > 0 && verified.backups[1].0 == made[1].name);
    let opened = BackupFolder::open(&place).expect("opens");
    let first = opened.backup(Some(&made[0].name)).expect("it is there");
    restore(&opened, &first, &new.path().join("data"), &mut |_, _| true).expect("restores");
}

/// A lost index made the next backup remove the pack, and one that was damaged made every command fail.
#[test]
fn a_pack_without_its_index_is_kept_while_a_backup_needs_it() {
    for is_removed in [false, true] {
        let (data, backups) = (folder(), folder());
        let place = backups.path().join("backups");
        let index = backups.path().join("backups/packs/000002.index");
        let before = index.clone();
        back_up_often(data.path(), &place, 3, move |number, place| {
            if number == 2 {
                if is_removed {
                    remove_file(&before).expect("removes")
                } else {
                    damage(&before)
                }
                write(place.join("packs/000009.pack"), "interrupted").expect("writes");
            }
        });
        assert!(place.join("packs/000002.pack").exists());
        assert!(!place.join("packs/000009.pack").exists(), "no backup needs it");
        let verified = verify(&place);
        assert_eq!(whole(&verified), [true, false, true], "{verified:?}");
        let mut opened = BackupFolder::open(&place).expect("opens");
        assert_eq!(prune(&mut opened, 1).expect("removes").backups, 2);
        drop(opened);
        assert_eq!(whole(&verify(&place)), [true]);
    }
}

/// One manifest that could not be read made all backups of a folder useless, and a stray file was the newest backup.
#[test]
fn a_damaged_manifest_concerns_one_backup() {
    let (data, backups) = (folder(), folder());
    let place = backups.path().join("backups");
    let made = back_up_often(data.path(), &place, 2, |_, _| {});
    write(place.join("backups/notes.json"), "{}").expect("writes");
    assert_eq!(whole(&verify(&place)), [true, true]);
    let manifest = place.join(format!("backups/{}.json", made[0].name));
    let other = read(place.join(format!("backups/{}.json", made[1].name))).expect("reads");
    for text in [&b""[..], b"{}", &other] {
        write(&manifest, text).expect("writes");
        assert_eq!(whole(&verify(&place)), [false, true]);
        let mut opened = BackupFolder::open(&place).expect("opens");
        assert_eq!(opened.backup(None).expect("the newest").name, made[1].name);
        let refused = opened.backup(Some(&made[0].name)).expect_err("damaged").to_string();
        assert!(refused.contains("manifest") && refused.contains("choose another backup"), "{refused}");
        // Its packs are not removed without a word.
        let packs = || read_dir(place.join("packs")).expect("reads").count();
        let before = packs();
        let refused = prune(&mut opened, 1).expect_err("damaged").to_string();
        assert!(
            refused.contains("no old backup was removed") && refused.contains(&made[0].name),
            "{refused}"
        );
        assert_eq!(packs(), before);
    }
    // When all that is missing is the newest one, no other is taken for it.
    write(place.join(format!("backups/{}.json", made[1].name)), "").expect("writes");
    assert!(BackupFolder::open(&place).expect("opens").backup(None).is_err());
}

/// A pack that somebody added had its blobs taken in place of those of the signed indexes.
#[test]
fn a_blob_of_a_foreign_pack_is_not_taken() {
    let (data, backups, new) = (folder(), folder(), folder());
    let place = backups.path().join("backups");
    let made = back_up_often(data.path(), &place, 1, |_, _| {});
    let mut index = read(place.join("packs/000001.index")).expect("reads");
    let end = index.len() - 32;
    for entry in index[8..end].chunks_mut(64) {
        let length = u64::from_le_bytes(entry[24..32].try_into().expect("eight bytes"));
        let zeros = vec![0; usize::try_from(length).expect("small")];
        entry[32..].copy_from_slice(&Sha256::digest(zeros));
    }
    let hash = Sha256::digest(&index[..end]);
    index[end..].copy_from_slice(&hash);
    write(place.join("packs/000002.index"), index).expect("writes");
    let length = read(place.join("packs/000001.pack")).expect("reads").len();
    write(place.join("packs/000002.pack"), vec![0; length]).expect("writes");
    let opened = BackupFolder::open(&place).expect("opens");
    let backup = opened.backup(Some(&made[0].name)).expect("it is there");
    let data_dir = new.path().join("data");
    restore(&opened, &backup, &data_dir, &mut |_, _| true).expect("restores");
    with_engine(&data_dir, |engine| async move { assert_round(&engine, 0).await });
}

/// A backup could not be restored onto a mount point. What a killed restoration leaves is never opened.
#[test]
fn a_restoration_leaves_other_folders_alone_and_is_no_store_before_its_end() {
    let (data, backups, new) = (folder(), folder(), folder());
    let place = backups.path().join("backups");
    back_up_often(data.path(), &place, 1, |_, _| {});
    let opened = BackupFolder::open(&place).expect("opens");
    let backup = opened.backup(None).expect("it is there");
    let data_dir = new.path().join("data");
    create_dir_all(data_dir.join("before/slices/00")).expect("a folder");
    create_dir(data_dir.join("lost+found")).expect("a folder");
    let again = |go_on: bool| restore(&opened, &backup, &data_dir, &mut |_, _| go_on);
    for file in ["superblock.json", "photo.jpg", "slices"] {
        write(data_dir.join(file), "").expect("writes");
        let refused = again(true).expect_err(file).to_string();
        assert!(refused.contains(&format!("has files, such as {file}")), "{refused}");
        remove_file(data_dir.join(file)).expect("removes");
    }
    for own in ["control", "audit", "backup"] {
        create_dir(data_dir.join(own)).expect("a folder");
        assert!(again(true).is_err(), "{own}");
        remove_dir(data_dir.join(own)).expect("removes");
    }
    // What a start that was refused leaves.
    write(data_dir.join("lock"), "").expect("writes");
    assert!(again(false).expect_err("it was interrupted").to_string().contains("interrupted"));
    // A new store in it would be a mixture. Neither error said what has left the folder in this state.
    let refused = Store::open(options(&data_dir)).map(drop).expect_err("no store").to_string();
    assert!(refused.contains("if `cairn backup restore` was interrupted here, remove"), "{refused}");
    let refused = again(true).expect_err("it has files").to_string();
    assert!(
        refused.contains("choose an empty folder")
            && refused.contains("if `cairn backup restore` was interrupted here"),
        "{refused}"
    );
    for left in ["slices", "control"] {
        std::fs::remove_dir_all(data_dir.join(left)).ok();
    }
    again(true).expect("restores");
    assert!(data_dir.join("before/slices/00").is_dir() && data_dir.join("lost+found").is_dir());
    with_engine(&data_dir, |engine| async move { assert_round(&engine, 0).await });
}
