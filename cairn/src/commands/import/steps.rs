//! Plans the import of a key's versions: compares the source's list with the journal.

use cairn_api::ObjectVersion;

use super::groups::Group;
use super::journal::{Record, State};
use crate::commands::remote::{Entry, Settings};

/// One step. The steps of a key are in the order of its history, oldest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the version is here, or it is gone, or what a client did here stays.
    Note(Record),
    /// Copies a version.
    Copy(Entry),
    /// Brings tags and lock up to date.
    Change(Entry, Settings, Record),
    /// Asks the source for tags and lock, which it does not list.
    Look(Entry, Record),
    /// Deletes a version that is gone at the source.
    Delete(Record),
}

/// Returns the steps of a key. `here` are its versions here, if that is known. `looks` is whether tags and locks that are not
/// listed are asked for.
pub(super) fn steps(
    group: Group,
    mut known: Vec<Record>,
    here: Option<&[ObjectVersion]>,
    looks: bool,
) -> Vec<Step> {
    let mut steps = Vec::with_capacity(group.entries.len());
    for entry in group.entries.into_iter().rev() {
        let place = known.iter().position(|record| record.id == entry.id());
        let record = place.map(|place| known.swap_remove(place)).map(|record| standing(record, here));
        steps.push(match (record, &entry.settings) {
            (Some(record), _) if !record.is_of(&entry) => Step::Copy(entry),
            (None, _) => Step::Copy(entry),
            (Some(record), _) if record.state != State::Imported || entry.is_marker => Step::Note(record),
            (Some(record), Some(settings)) => {
                if settings.fingerprint() == record.settings {
                    Step::Note(record)
                } else {
                    Step::Change(entry.clone(), settings.clone(), record)
                }
            }
            (Some(record), None) if looks => Step::Look(entry, record),
            (Some(record), None) => Step::Note(record),
        });
    }
    // What is left is at the source no more.
    steps.extend(known.into_iter().map(gone));
    steps
}

/// Returns the record of a version that the source lists, with what is here under its id now.
fn standing(record: Record, here: Option<&[ObjectVersion]>) -> Record {
    let state = match here.map(|here| here.iter().find(|one| *one.version_id == *record.id)) {
        None if record.state == State::Gone => State::Imported,
        None => record.state,
        Some(None) => State::Deleted,
        Some(Some(one)) if one.imported => State::Imported,
        Some(Some(_)) => State::Kept,
    };
    Record { state, ..record }
}

/// Returns the step for a version that the source does not list any more.
pub(super) fn gone(record: Record) -> Step {
    Step::Note(Record { state: State::Gone, ..record })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, etag: &str, settings: Option<Settings>) -> Entry {
        Entry {
            key: "k".to_owned(),
            version_id: Some(id.to_owned()),
            is_marker: false,
            is_latest: true,
            etag: etag.to_owned(),
            size: 1,
            modified: 7,
            has_client_key: false,
            settings,
        }
    }

    fn tagged(value: &str) -> Settings {
        Settings { tags: vec![("a".to_owned(), value.to_owned())], ..Settings::default() }
    }

    #[test]
    fn only_what_differs_is_done_oldest_first() {
        let plain = Settings::default();
        let known = |id: &str, settings: &Settings, state| {
            Record::of(&entry(id, "e", None), settings.fingerprint(), state)
        };
        let records = vec![
            known("same", &plain, State::Imported),
            known("null", &plain, State::Imported),
            known("tagged", &plain, State::Imported),
            known("kept", &plain, State::Kept),
            known("gone", &plain, State::Imported),
        ];
        let entries = vec![
            entry("new", "e", Some(plain.clone())),
            entry("kept", "e", Some(tagged("1"))),
            entry("tagged", "e", Some(tagged("1"))),
            entry("null", "other", Some(plain.clone())),
            entry("same", "e", Some(plain.clone())),
        ];
        let group = Group { key: "k".to_owned(), entries: entries.clone() };
        let found = steps(group, records.clone(), None, false);
        let [new, kept, changed, null, _] = entries.try_into().expect("five");
        assert_eq!(
            found,
            [
                Step::Note(records[0].clone()),
                Step::Copy(null),
                Step::Change(changed, tagged("1"), records[2].clone()),
                Step::Note(Record { settings: plain.fingerprint(), ..records[3].clone() }),
                Step::Copy(new),
                Step::Note(Record { state: State::Gone, ..records[4].clone() }),
            ]
        );
        let _ = kept;
    }

    #[test]
    fn settings_that_are_not_listed_are_asked_for_once_a_run() {
        let record = Record::of(&entry("1", "e", None), "s".to_owned(), State::Imported);
        let group = || Group { key: "k".to_owned(), entries: vec![entry("1", "e", None)] };
        assert_eq!(
            steps(group(), vec![record.clone()], None, true),
            [Step::Look(entry("1", "e", None), record.clone())]
        );
        assert_eq!(steps(group(), vec![record.clone()], None, false), [Step::Note(record)]);
    }

    fn version(id: &str, imported: bool) -> ObjectVersion {
        serde_json::from_value(serde_json::json!({
            "key": "k", "version_id": id, "is_latest": true, "is_delete_marker": false, "size": 1, "etag": "e",
            "last_modified": "2026-01-01T00:00:00.000Z", "legal_hold": false, "imported": imported,
        }))
        .expect("a version")
    }

    #[test]
    fn what_clients_did_here_stays() {
        let record =
            Record::of(&entry("null", "e", None), Settings::default().fingerprint(), State::Imported);
        let states = [State::Imported, State::Kept, State::Deleted, State::Gone];
        for record in states.map(|state| Record { state, ..record.clone() }) {
            let noted = |here: &[ObjectVersion]| {
                let entries = vec![entry("null", "e", Some(tagged("1")))];
                let group = Group { key: "k".to_owned(), entries };
                steps(group, vec![record.clone()], Some(here), true)
            };
            let with = |state| [Step::Note(Record { state, ..record.clone() })];
            assert_eq!(noted(&[]), with(State::Deleted));
            assert_eq!(noted(&[version("other", true)]), with(State::Deleted));
            assert_eq!(noted(&[version("null", false)]), with(State::Kept));
            assert!(
                matches!(&*noted(&[version("null", true)]), [Step::Change(_, _, changed)] if changed.state == State::Imported)
            );
        }
    }
}
