//! What is to be done for the versions of a key: the source's list beside the journal.

use super::groups::Group;
use super::journal::{Record, State};
use crate::commands::remote::{Entry, Settings};

/// One step. The steps of a key are in the order of its history, oldest first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the version is here, or it is gone.
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

/// Returns the steps of a key. `looks` is whether tags and locks that are not listed are asked for.
pub(super) fn steps(group: Group, mut known: Vec<Record>, looks: bool) -> Vec<Step> {
    let mut steps = Vec::with_capacity(group.entries.len());
    for entry in group.entries.into_iter().rev() {
        let place = known.iter().position(|record| record.id == entry.id());
        let record = place.map(|place| known.swap_remove(place));
        steps.push(match (record, &entry.settings) {
            (Some(record), _) if !record.is_of(&entry) => Step::Copy(entry),
            (None, _) => Step::Copy(entry),
            (Some(record), _) if record.state == State::Kept || entry.is_marker => Step::Note(record),
            (Some(record), Some(settings)) => {
                let record = Record { state: State::Imported, ..record };
                if settings.fingerprint() == record.settings {
                    Step::Note(record)
                } else {
                    Step::Change(entry.clone(), settings.clone(), record)
                }
            }
            (Some(record), None) if looks => Step::Look(entry, record),
            (Some(record), None) => Step::Note(Record { state: State::Imported, ..record }),
        });
    }
    // What is left is at the source no more.
    steps.extend(known.into_iter().map(gone));
    steps
}

/// Returns the step for a version that the source does not list any more.
pub(super) fn gone(record: Record) -> Step {
    let state = if record.state == State::Imported { State::Gone } else { record.state };
    Step::Note(Record { state, ..record })
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
        let found = steps(Group { key: "k".to_owned(), entries: entries.clone() }, records.clone(), false);
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
            steps(group(), vec![record.clone()], true),
            [Step::Look(entry("1", "e", None), record.clone())]
        );
        assert_eq!(steps(group(), vec![record.clone()], false), [Step::Note(record)]);
    }
}
