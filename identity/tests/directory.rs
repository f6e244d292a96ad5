//! The directory of accounts through its public surface: what holds at once, what lasts, what is refused, what is never told.
#![allow(clippy::unwrap_used, reason = "tests")]

use cairn_identity::directory::{
    AccountId, CREDENTIALS_PER_ACCOUNT_MAX, Directory, DirectoryError, DirectoryOpenError, DirectoryOptions,
    ExecutorCredentials, NewCredential, Outcome, PolicyId,
};
use cairn_identity::policy::{Action, Policy, Resource};
use cairn_identity::{Credential, Credentials, Principal, Role, RootCredential};
use cairn_model::{Clock, Timestamp};
use futures_lite::future::{block_on, zip};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STORE: [u8; 16] = [7; 16];
const MASTER_KEY: &[u8] = b"a master key of the tests, long enough";
const ROOT: &str = "root-access-key";
const NOW: u64 = 1_795_237_200_000;

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// A folder with a directory in it, and the clock that it lives by.
struct Place {
    folder: tempfile::TempDir,
    clock: Arc<TestClock>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("unmade"), b"").unwrap();
        Self { folder, clock: Arc::new(TestClock(AtomicU64::new(NOW))) }
    }

    fn options(&self) -> DirectoryOptions {
        DirectoryOptions {
            folder: self.folder.path().to_owned(),
            store: STORE,
            master_key: MASTER_KEY.to_vec(),
            root_access_key: ROOT.to_owned(),
            clock: self.clock.clone(),
        }
    }

    fn open(&self) -> Arc<Directory> {
        Directory::open(self.options()).unwrap()
    }

    fn refusal(&self, change: impl FnOnce(&mut DirectoryOptions)) -> String {
        let mut options = self.options();
        change(&mut options);
        Directory::open(options).map(drop).unwrap_err().to_string()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data.mdb")
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds * 1000, Ordering::Relaxed);
    }
}

fn executor(directory: &Arc<Directory>) -> ExecutorCredentials {
    ExecutorCredentials::new(RootCredential::new(ROOT, "root-secret"), Arc::clone(directory))
}

fn create(directory: &Directory, name: &str) -> (AccountId, NewCredential) {
    let (account, credential) = block_on(directory.create_account(name.to_owned(), String::new())).unwrap();
    (account.id, credential)
}

fn policy(effect: &str, action: &str, resource: &str) -> Policy {
    let text = format!(
        r#"{{"name":"p","statements":[{{"effect":"{effect}","actions":["{action}"],"resources":["{resource}"]}}]}}"#
    );
    Policy::from_json(text.as_bytes()).unwrap()
}

fn add_policy(directory: &Directory, effect: &str, action: &str, resource: &str) -> PolicyId {
    block_on(directory.create_policy(policy(effect, action, resource))).unwrap().id
}

fn may(found: &Credential, action: Action, bucket: &str, key: &str) -> bool {
    found.principal.decide(action, Resource::Object(bucket, key)).is_allowed()
}

#[test]
fn a_new_account_is_found_with_its_secret_and_may_do_nothing_also_after_a_restart() {
    let place = Place::new();
    let directory = place.open();
    let (id, made) = create(&directory, "web");
    let key = made.info.access_key.clone();
    let check = |directory: &Arc<Directory>| {
        let found = executor(directory).find(&key, place.now()).unwrap();
        assert_eq!((&*found.secret_key, found.allowed_on_data_plane), (made.secret_key.expose(), true));
        assert_eq!(found.principal.to_string(), "account:web");
        assert!(!may(&found, Action::GetObject, "photos", "a") && !found.principal.sees_bucket("photos"));
        let account = directory.account(id).unwrap();
        assert_eq!((account.enabled, account.created_at), (true, Timestamp(NOW)));
        assert_eq!(account.credentials, std::slice::from_ref(&made.info));
    };
    check(&directory);
    assert!(executor(&directory).find("unknown", place.now()).is_none());
    assert_eq!(executor(&directory).find(ROOT, place.now()).unwrap().principal, Principal::Root);
    drop(directory);
    check(&place.open());
}

/// What one executor has at hand must not outlive a change: each of these was decided from its cache just before.
#[test]
fn a_change_holds_for_the_next_lookup_of_every_executor() {
    let place = Place::new();
    let directory = place.open();
    let executors = [executor(&directory), executor(&directory), executor(&directory)];
    let (id, made) = create(&directory, "web");
    let key = &*made.info.access_key;
    let everywhere = |wanted: &dyn Fn(Option<Credential>) -> bool| {
        executors.iter().all(|executor| wanted(executor.find(key, place.now())))
    };
    let is_found = |wanted: bool| everywhere(&|found| found.is_some() == wanted);
    let may_read =
        |wanted: bool| everywhere(&|found| may(&found.unwrap(), Action::GetObject, "photos", "a") == wanted);
    assert!(is_found(true) && may_read(false));
    let readers = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(readers, id)).unwrap();
    assert!(may_read(true));
    let deny = add_policy(&directory, "deny", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(deny, id)).unwrap();
    assert!(may_read(false), "deny wins");
    block_on(directory.detach(deny, id)).unwrap();
    assert!(may_read(true));
    block_on(directory.set_credential_enabled(id, made.info.id, false)).unwrap();
    assert!(is_found(false));
    block_on(directory.set_credential_enabled(id, made.info.id, true)).unwrap();
    assert!(is_found(true));
    let (account, _) = block_on(directory.set_account_enabled(id, false)).unwrap();
    assert!(is_found(false) && !account.enabled);
    block_on(directory.set_account_enabled(id, true)).unwrap();
    assert!(may_read(true));
    block_on(directory.detach(readers, id)).unwrap();
    assert!(may_read(false));
    block_on(directory.delete_account(id)).unwrap();
    assert!(is_found(false));
}

#[test]
fn rotation_leaves_the_old_credential_working_until_it_is_disabled_or_removed() {
    let place = Place::new();
    let directory = place.open();
    let (id, old) = create(&directory, "web");
    let new = block_on(directory.rotate(id)).unwrap();
    let executor = executor(&directory);
    let works = |made: &NewCredential| {
        let found = executor.find(&made.info.access_key, place.now());
        found.is_some_and(|found| &*found.secret_key == made.secret_key.expose())
    };
    assert!(works(&old) && works(&new) && old.secret_key != new.secret_key);
    block_on(directory.set_credential_enabled(id, old.info.id, false)).unwrap();
    assert!(!works(&old) && works(&new));
    block_on(directory.delete_credential(id, old.info.id)).unwrap();
    assert_eq!(directory.account(id).unwrap().credentials, std::slice::from_ref(&new.info));
    let gone = block_on(directory.set_credential_enabled(id, old.info.id, true));
    assert_eq!(gone.unwrap_err(), DirectoryError::CredentialNotFound);
    for _ in 1..CREDENTIALS_PER_ACCOUNT_MAX {
        block_on(directory.rotate(id)).unwrap();
    }
    assert!(matches!(block_on(directory.rotate(id)), Err(DirectoryError::TooMany { .. })));
}

#[test]
fn a_temporary_credential_dies_by_the_clock_and_is_shown_a_while_longer() {
    let place = Place::new();
    let directory = place.open();
    let (id, lasting) = create(&directory, "web");
    for seconds in [0, 59, 604_801, u64::MAX] {
        let refused = block_on(directory.create_temporary(id, seconds));
        assert!(matches!(refused, Err(DirectoryError::Invalid(_))), "{seconds}");
    }
    let made = block_on(directory.create_temporary(id, 60)).unwrap();
    assert_eq!(made.info.expires_at, Some(Timestamp(NOW + 60_000)));
    let executor = executor(&directory);
    let is_found = |now| executor.find(&made.info.access_key, now).is_some();
    assert!(is_found(Timestamp(NOW + 59_999)));
    assert!(!is_found(Timestamp(NOW + 60_000)), "by the clock, though it was at hand");
    assert!(!is_found(Timestamp(NOW + 3_600_000)));
    assert!(!is_found(Timestamp(NOW + 59_999)), "a clock that was set back revives nothing");
    assert_eq!(directory.account(id).unwrap().credentials.len(), 2);
    place.pass(60);
    drop((executor, directory));
    let directory = place.open();
    let key = &made.info.access_key;
    let executor = self::executor(&directory);
    // Made in the same millisecond, they stand in any order.
    let shown = directory.account(id).unwrap().credentials;
    assert!(shown.len() == 2 && shown.contains(&lasting.info) && shown.contains(&made.info));
    assert!(executor.find(key, place.now()).is_none());
}

#[test]
fn names_are_unique_and_what_is_not_there_is_said_to_be_missing() {
    let place = Place::new();
    let directory = place.open();
    let make = || directory.create_account("web".to_owned(), String::new());
    let both = block_on(zip(make(), make()));
    let taken: Vec<_> = [both.0, both.1].into_iter().filter_map(Result::err).collect();
    assert_eq!(taken, [DirectoryError::NameTaken]);
    let id = directory.accounts(None, usize::MAX)[0].id;
    block_on(directory.delete_account(id)).unwrap();
    assert_eq!(block_on(directory.delete_account(id)), Err(DirectoryError::AccountNotFound));
    assert!(matches!(block_on(directory.rotate(id)), Err(DirectoryError::AccountNotFound)));
    let (id, _) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    for _ in 0..2 {
        block_on(directory.attach(policy, id)).unwrap();
    }
    assert_eq!(directory.policy(policy).unwrap().attached_to, [id]);
    let in_use = block_on(directory.delete_policy(policy));
    assert_eq!(in_use.unwrap_err(), DirectoryError::PolicyInUse { accounts: 1 });
    for _ in 0..2 {
        block_on(directory.detach(policy, id)).unwrap();
    }
    block_on(directory.delete_policy(policy)).unwrap();
    assert_eq!(block_on(directory.attach(policy, id)), Err(DirectoryError::PolicyNotFound));
    assert_eq!(block_on(directory.detach(policy, id)), Err(DirectoryError::PolicyNotFound));
    for bad in ["", " web", "we\u{301}b"] {
        let refused = block_on(directory.create_account(bad.to_owned(), String::new()));
        assert!(matches!(refused, Err(DirectoryError::Invalid(_))), "{bad:?}");
    }
}

#[test]
fn a_list_is_walked_page_by_page_and_has_each_once() {
    let place = Place::new();
    let directory = place.open();
    let made: Vec<_> = (0..7).map(|number| create(&directory, &format!("account {number}")).0).collect();
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let page = directory.accounts(last, 3);
        assert!(page.len() <= 3);
        let Some(end) = page.last() else { break };
        last = Some(end.id);
        found.extend(page.into_iter().map(|account| account.id));
    }
    let mut made = made;
    made.sort_unstable();
    assert_eq!(found, made);
}

/// Each account had rights of its own: a thousand accounts with one large policy took a thousand times its memory.
#[test]
fn accounts_with_the_same_policies_share_what_these_amount_to() {
    let place = Place::new();
    let directory = place.open();
    let accounts: Vec<_> = (0..3).map(|number| create(&directory, &format!("account {number}"))).collect();
    let policies = ["a", "b"]
        .map(|key| add_policy(&directory, "allow", "s3:GetObject", &format!("bucket:photos/{key}")));
    for (order, (id, _)) in accounts.iter().enumerate() {
        block_on(directory.attach(policies[order % 2], *id)).unwrap();
        block_on(directory.attach(policies[(order + 1) % 2], *id)).unwrap();
    }
    let rights = |directory: &Arc<Directory>| {
        let executor = executor(directory);
        let of = |(_, made): &(AccountId, NewCredential)| {
            let found = executor.find(&made.info.access_key, place.now()).unwrap();
            assert!(may(&found, Action::GetObject, "photos", "a"));
            match found.principal {
                Principal::Account(account) => Arc::clone(&account.rights),
                Principal::Root => panic!("root"),
            }
        };
        accounts.iter().map(of).collect::<Vec<_>>()
    };
    let shared = rights(&directory);
    assert!(shared.iter().all(|rights| Arc::ptr_eq(rights, &shared[0])));
    block_on(directory.detach(policies[1], accounts[0].0)).unwrap();
    let after = rights(&directory);
    assert!(!Arc::ptr_eq(&after[0], &after[1]) && Arc::ptr_eq(&after[1], &after[2]));
    drop(directory);
    let again = rights(&place.open());
    assert!(!Arc::ptr_eq(&again[0], &again[1]) && Arc::ptr_eq(&again[1], &again[2]));
}

/// A change that changes nothing was written, raised the version, which makes every core look everything up again, and was
/// recorded as a change.
#[test]
fn what_is_so_already_is_said_to_be_unchanged_and_not_written() {
    let place = Place::new();
    let directory = place.open();
    let (id, made) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    let written = || fs::read(place.data()).unwrap();
    let twice = |change: &dyn Fn() -> Outcome| {
        assert_eq!(change(), Outcome::Changed);
        let before = written();
        assert_eq!(change(), Outcome::Unchanged);
        assert!(before == written(), "nothing was committed");
    };
    twice(&|| block_on(directory.attach(policy, id)).unwrap());
    twice(&|| block_on(directory.detach(policy, id)).unwrap());
    for enabled in [false, true] {
        twice(&|| block_on(directory.set_credential_enabled(id, made.info.id, enabled)).unwrap().1);
        twice(&|| block_on(directory.set_account_enabled(id, enabled)).unwrap().1);
    }
}

/// A page counted entries alone: 128 accounts with ten thousand policies each were copied in one go, under the lock.
#[test]
fn a_page_counts_what_its_entries_hold_and_has_one_at_least() {
    let place = Place::new();
    let directory = place.open();
    let (first, _) = create(&directory, "first");
    for _ in 0..4 {
        block_on(directory.rotate(first)).unwrap();
    }
    create(&directory, "second");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    // An account and its credentials; a policy, its resource and the account that it is attached to.
    for (most, accounts) in [(1, 1), (7, 1), (8, 2)] {
        assert_eq!(directory.accounts(None, most).len(), accounts, "{most}");
    }
    assert_eq!(directory.policies(None, 4).len(), 2);
    block_on(directory.attach(policy, first)).unwrap();
    assert_eq!((directory.policies(None, 4).len(), directory.policies(None, 5).len()), (1, 2));
}

#[test]
fn an_account_that_is_removed_takes_its_credentials_and_bindings_along() {
    let place = Place::new();
    let directory = place.open();
    let (id, made) = create(&directory, "web");
    let policy = add_policy(&directory, "allow", "s3:GetObject", "bucket:photos/*");
    block_on(directory.attach(policy, id)).unwrap();
    block_on(directory.delete_account(id)).unwrap();
    let check = |directory: &Arc<Directory>| {
        assert!(
            directory.accounts(None, usize::MAX).is_empty()
                && directory.policy(policy).unwrap().attached_to.is_empty()
        );
        assert!(executor(directory).find(&made.info.access_key, place.now()).is_none());
    };
    check(&directory);
    drop(directory);
    check(&place.open());
}

#[test]
fn management_tokens_are_found_by_themselves_alone_until_they_expire() {
    let place = Place::new();
    let directory = place.open();
    let create = |name: &str, role, seconds| block_on(directory.create_token(name.to_owned(), role, seconds));
    let lasting = create("ops", Role::StorageAdmin, None).unwrap();
    let short = create("look", Role::Auditor, Some(10)).unwrap();
    assert_eq!(directory.find_token(lasting.token.expose()), Some(lasting.info.clone()));
    assert_eq!(directory.find_token(short.token.expose()).unwrap().role, Role::Auditor);
    let other = format!("{}x", lasting.token.expose());
    for wrong in ["", "cairn_mt_", &other, &lasting.token.expose()[1..]] {
        assert_eq!(directory.find_token(wrong), None);
    }
    place.pass(10);
    assert_eq!(directory.find_token(short.token.expose()), None);
    assert!(matches!(create("x", Role::Auditor, Some(0)), Err(DirectoryError::Invalid(_))));
    directory.close();
    drop(directory);
    let directory = place.open();
    assert_eq!(directory.find_token(short.token.expose()), None);
    assert!(directory.find_token(lasting.token.expose()).is_some());
    block_on(directory.delete_token(lasting.info.id)).unwrap();
    assert_eq!(directory.find_token(lasting.token.expose()), None);
    assert_eq!(block_on(directory.delete_token(lasting.info.id)), Err(DirectoryError::TokenNotFound));
}

#[test]
fn no_secret_is_in_the_data_file_or_in_what_debug_shows() {
    let place = Place::new();
    let directory = place.open();
    let (id, made) = create(&directory, "web");
    let temporary = block_on(directory.create_temporary(id, 600)).unwrap();
    let token = block_on(directory.create_token("ops".to_owned(), Role::Auditor, None)).unwrap();
    let found = executor(&directory).find(&made.info.access_key, place.now()).unwrap();
    let shown = format!(
        "{made:?}{temporary:?}{token:?}{found:?}{:?}{:?}",
        directory.accounts(None, usize::MAX),
        directory.tokens(None, usize::MAX)
    );
    directory.close();
    let bytes = fs::read(place.data()).unwrap();
    for secret in [&made.secret_key, &temporary.secret_key, &token.token] {
        let secret = secret.expose();
        assert!(!shown.contains(secret));
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
    let key = made.info.access_key.as_bytes();
    assert!(bytes.windows(key.len()).any(|window| window == key), "the search finds what is there");
}

#[test]
fn a_last_use_is_kept_over_a_restart_and_goes_with_its_credential() {
    let place = Place::new();
    let directory = place.open();
    let (id, made) = create(&directory, "web");
    let executor = executor(&directory);
    let last_use = || directory.account(id).unwrap().credentials[0].last_used_at;
    let found = executor.find(&made.info.access_key, place.now()).unwrap();
    assert_eq!(last_use(), None, "a lookup is no use: anyone can cause one");
    found.last_use.unwrap().note(Timestamp(NOW + 5));
    assert_eq!(last_use(), Some(Timestamp(NOW + 5)));
    directory.close();
    drop((executor, directory));
    let directory = place.open();
    assert_eq!(directory.account(id).unwrap().credentials[0].last_used_at, Some(Timestamp(NOW + 5)));
}

#[test]
fn a_directory_that_was_deleted_truncated_swapped_or_sealed_otherwise_is_refused_and_left_alone() {
    let place = Place::new();
    let directory = place.open();
    assert!(!place.folder.path().join("unmade").exists());
    create(&directory, "web");
    drop(directory);
    let whole = fs::read(place.data()).unwrap();
    assert!(place.refusal(|options| options.store = [8; 16]).contains("belongs to another store"));
    let sealed = place.refusal(|options| options.master_key = b"another".to_vec());
    assert!(sealed.contains("table credentials"), "{sealed}");
    fs::write(place.data(), &whole[..16_384]).unwrap();
    assert!(place.refusal(|_| {}).contains("truncated"));
    fs::remove_file(place.data()).unwrap();
    let missing = place.refusal(|_| {});
    assert!(missing.contains("missing or empty") && missing.contains("unmade"), "{missing}");
    assert!(!place.data().exists(), "nothing was made in its place");
    fs::write(place.data(), &whole).unwrap();
    assert_eq!(place.open().accounts(None, usize::MAX).len(), 1);
}

/// A flipped bit must neither widen what somebody may do nor vanish somebody.
#[test]
fn a_damaged_record_is_refused() {
    let place = Place::new();
    let directory = place.open();
    block_on(directory.create_policy(policy("deny", "s3:GetObject", "bucket:a-needle/*"))).unwrap();
    drop(directory);
    let mut bytes = fs::read(place.data()).unwrap();
    let needle = b"a-needle";
    let places: Vec<_> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(place.data(), bytes).unwrap();
    let refused = Directory::open(place.options()).map(drop).unwrap_err();
    assert!(matches!(refused, DirectoryOpenError::Damaged { .. }), "{refused}");
}

#[test]
fn a_closed_directory_shows_what_it_has_and_changes_nothing() {
    let place = Place::new();
    let directory = place.open();
    let (_, made) = create(&directory, "web");
    directory.close();
    assert!(executor(&directory).find(&made.info.access_key, place.now()).is_some());
    let refused = block_on(directory.create_account("late".to_owned(), String::new()));
    assert_eq!(refused.unwrap_err(), DirectoryError::ShuttingDown);
    assert_eq!((directory.accounts(None, usize::MAX).len(), directory.health()), (1, Ok(())));
}
