//! Lifecycle rules: what they remove, and when (AWS: "Managing the lifecycle of objects").
//!
//! Nothing is recorded in objects. A rule is evaluated when it acts, so a change of a rule applies to all existing objects.

use crate::error::EngineError;
use crate::limits::LIFECYCLE_RULES_MAX;
use crate::types::tags::Tags;
use cairn_model::Timestamp;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// Length of the text of an id: a hyphenated UUID.
const ID_TEXT_BYTES: usize = 36;

/// The id of a lifecycle rule: a UUID of version 7 (RFC 9562, section 5.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId(pub(crate) [u8; 16]);

impl RuleId {
    /// Returns a new id.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the system has no random numbers.
    pub fn new(now: Timestamp) -> Result<Self, EngineError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(|error| EngineError::Io(format!("random numbers are not available: {error}")))?;
        let [a, b, c, d, e, f, ..] = (now.0 << 16).to_be_bytes();
        id[..6].copy_from_slice(&[a, b, c, d, e, f]);
        id[6] = id[6] & 0x0F | 0x70;
        id[8] = id[8] & 0x3F | 0x80;
        Ok(Self(id))
    }

    /// Parses a hyphenated UUID of version 7.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = Some(text).filter(|text| text.len() == ID_TEXT_BYTES).map(Uuid::try_parse)?.ok()?;
        (id.get_version_num() == 7).then_some(Self(id.into_bytes()))
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).hyphenated().fmt(out)
    }
}

/// The length of a day in lifecycle rules, in seconds. Other values than 86 400 are for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayLength(pub u64);

impl Default for DayLength {
    fn default() -> Self {
        Self(DAY_MS / 1000)
    }
}

impl DayLength {
    /// Returns when something that began at `since` is `days` days old.
    ///
    /// With real days that is the first UTC midnight at or after the age is reached (AWS: "How Amazon S3 calculates how long an
    /// object has been noncurrent"). Otherwise it is as soon as the age is reached.
    #[must_use]
    pub fn due_at(self, since: Timestamp, days: u32) -> Timestamp {
        let length = self.0.saturating_mul(1000);
        let reached = since.0.saturating_add(length.saturating_mul(u64::from(days)));
        if length != DAY_MS {
            return Timestamp(reached);
        }
        Timestamp(reached.div_ceil(DAY_MS).saturating_mul(DAY_MS))
    }

    /// Returns the latest beginning that is due at `now` after `days` days. `None` if nothing is.
    pub(crate) fn latest_due(self, now: Timestamp, days: u32) -> Option<Timestamp> {
        let length = self.0.saturating_mul(1000);
        // Whatever reaches its age by the last midnight is due.
        let by = if length == DAY_MS { now.0 / DAY_MS * DAY_MS } else { now.0 };
        by.checked_sub(length.checked_mul(u64::from(days))?).map(Timestamp)
    }
}

/// The role of a version among the versions of its key, as far as lifecycle rules care.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VersionRole {
    /// The current object.
    Current,
    /// An object or delete marker with a newer version.
    Noncurrent,
    /// A delete marker that is the key's only version.
    LoneMarker,
    /// An unfinished multipart upload, which is no version yet.
    UnfinishedUpload,
}

impl VersionRole {
    /// All roles, in the order of their numbers on disk.
    pub const ALL: [Self; 4] = [Self::Current, Self::Noncurrent, Self::LoneMarker, Self::UnfinishedUpload];

    /// Returns the number on disk.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Current => 0,
            Self::Noncurrent => 1,
            Self::LoneMarker => 2,
            Self::UnfinishedUpload => 3,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.number() == number)
    }
}

/// The form of a rule's prefix and tags that S3 clients see: the one in which a client wrote them.
///
/// Terraform and others compare what they read with what they wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FilterForm {
    /// The shortest filter: one `Prefix` or one `Tag`, and `And` around several of them.
    #[default]
    Shortest,
    /// A filter without anything in it.
    Empty,
    /// A `Prefix` of the rule itself, and no filter.
    RulePrefix,
    /// `And` around a single prefix or tag.
    And,
    /// `And` around an empty prefix and tags.
    AndEmptyPrefix,
}

impl FilterForm {
    /// All forms, in the order of their numbers on disk.
    pub(crate) const ALL: [Self; 5] =
        [Self::Shortest, Self::Empty, Self::RulePrefix, Self::And, Self::AndEmptyPrefix];

    /// Returns the number on disk.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Shortest => 0,
            Self::Empty => 1,
            Self::RulePrefix => 2,
            Self::And => 3,
            Self::AndEmptyPrefix => 4,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.number() == number)
    }
}

/// A lifecycle rule of a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LifecycleRule {
    /// The id, which stays when the rule is changed.
    pub id: RuleId,
    /// The id that an S3 client gave the rule. `None`: S3 clients see [`LifecycleRule::id`].
    pub s3_id: Option<String>,
    /// The rule is about keys that begin with this.
    pub prefix: String,
    /// The rule is about versions that have all of these tags. Delete markers have no tags.
    pub tags: Tags,
    /// The form in which S3 clients see both.
    pub form: FilterForm,
    /// Age in days at which current objects expire.
    pub expiration_days: Option<u32>,
    /// Days after which non-current versions are removed, from when they became non-current.
    pub noncurrent_days: Option<u32>,
    /// So many of the newest non-current versions are kept.
    pub newer_noncurrent_versions: u32,
    /// Whether delete markers that are a key's only version are removed at once.
    pub expired_delete_markers: bool,
    /// Days after which unfinished uploads are aborted, from when they were begun. Not in a rule with tags.
    pub abort_uploads_days: Option<u32>,
    /// Whether the rule acts.
    pub is_enabled: bool,
    /// The time when the rule was created.
    pub created_at: Timestamp,
}

impl LifecycleRule {
    /// Returns when the rule removes a version that has a role since `since`. `None` if it never does. Prefix, state, tags of
    /// the version and the number of kept versions are not considered.
    #[must_use]
    pub fn due_at(&self, role: VersionRole, since: Timestamp, day: DayLength) -> Option<Timestamp> {
        match role {
            VersionRole::Current => self.expiration_days.map(|days| day.due_at(since, days)),
            VersionRole::Noncurrent => self.noncurrent_days.map(|days| day.due_at(since, days)),
            // A delete marker has no tags.
            VersionRole::LoneMarker if !self.tags.is_empty() => None,
            VersionRole::LoneMarker if self.expired_delete_markers => Some(since),
            VersionRole::LoneMarker => self.expiration_days.map(|days| day.due_at(since, days)),
            VersionRole::UnfinishedUpload => self.upload_days().map(|days| day.due_at(since, days)),
        }
    }

    /// Returns the days after which uploads are aborted. An upload is no version, so no tag selects it.
    fn upload_days(&self) -> Option<u32> {
        self.abort_uploads_days.filter(|_| self.tags.is_empty())
    }

    /// Returns whether the rule does anything to versions, and not only to unfinished uploads.
    pub(crate) const fn acts_on_versions(&self) -> bool {
        self.expiration_days.is_some() || self.noncurrent_days.is_some() || self.expired_delete_markers
    }

    /// Returns whether the rule has an action.
    #[must_use]
    pub const fn has_action(&self) -> bool {
        self.acts_on_versions() || self.abort_uploads_days.is_some()
    }

    /// Returns the latest beginning of a role that the rule considers due at `now`. `None` if nothing is due.
    pub(crate) fn latest_due(&self, role: VersionRole, now: Timestamp, day: DayLength) -> Option<Timestamp> {
        let days = match role {
            VersionRole::LoneMarker if !self.tags.is_empty() => None,
            VersionRole::LoneMarker if self.expired_delete_markers => return Some(now),
            VersionRole::Current | VersionRole::LoneMarker => self.expiration_days,
            VersionRole::Noncurrent => self.noncurrent_days,
            VersionRole::UnfinishedUpload => self.upload_days(),
        };
        day.latest_due(now, days?)
    }

    /// Returns the id that S3 clients see.
    #[must_use]
    pub fn id_in_s3(&self) -> String {
        self.s3_id.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// Returns the rule as it becomes when it replaces another one.
    #[must_use]
    pub fn in_place_of(self, before: &Self) -> Self {
        let is_same_filter = self.prefix == before.prefix && self.tags == before.tags;
        let form = if is_same_filter { before.form } else { self.form };
        Self { created_at: before.created_at, s3_id: before.s3_id.clone(), form, ..self }
    }

    /// Returns whether the rule is about a version with these tags. The key is not considered.
    pub(crate) fn selects(&self, tags: &Tags) -> bool {
        tags.contains_all(&self.tags)
    }

    fn matches(&self, key: &[u8]) -> bool {
        self.is_enabled && key.starts_with(self.prefix.as_bytes())
    }
}

/// The lifecycle rules of a bucket, in the order in which they were added. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LifecycleRules(pub(crate) Vec<LifecycleRule>);

impl LifecycleRules {
    /// Returns the rules.
    pub fn iter(&self) -> impl Iterator<Item = &LifecycleRule> {
        self.0.iter()
    }

    /// Returns the rule with this id.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&LifecycleRule> {
        self.0.iter().find(|rule| rule.id == id)
    }

    /// Returns whether some enabled rule has tags.
    pub(crate) fn have_tags(&self) -> bool {
        self.0.iter().any(|rule| rule.is_enabled && !rule.tags.is_empty())
    }

    /// Returns the tags of all rules, for a planted mistake.
    pub(crate) fn all_tags(&self) -> Tags {
        let pairs = self.0.iter().flat_map(|rule| rule.tags.iter());
        Tags::of_record(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// Returns the enabled rules that match a key and are due at `now` for a role, each with its due time. Tags are not
    /// considered: only few rules have some, and reading those of a version takes time.
    pub(crate) fn due<'r>(
        &'r self,
        key: &'r [u8],
        (role, since): (VersionRole, Timestamp),
        day: DayLength,
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, &'r LifecycleRule)> + 'r {
        let matching = self.0.iter().filter(|rule| rule.matches(key));
        matching.filter_map(move |rule| {
            let due = rule.due_at(role, since, day).filter(|due| *due <= now)?;
            Some((due, rule))
        })
    }

    /// Returns the rule that expires a current object first, and when.
    #[must_use]
    pub fn expiration_of<'r>(
        &'r self,
        key: &'r [u8],
        tags: &Tags,
        since: Timestamp,
        day: DayLength,
    ) -> Option<(Timestamp, &'r LifecycleRule)> {
        let role = (VersionRole::Current, since);
        let due = self.due(key, role, day, Timestamp(u64::MAX)).filter(|(_, rule)| rule.selects(tags));
        // The first of several with the same time.
        due.min_by_key(|(due, _)| *due)
    }

    /// Returns the rule that aborts an upload of a key first, and when, given when the upload was begun.
    #[must_use]
    pub fn abort_of<'r>(
        &'r self,
        key: &'r [u8],
        initiated: Timestamp,
        day: DayLength,
    ) -> Option<(Timestamp, &'r LifecycleRule)> {
        let role = (VersionRole::UnfinishedUpload, initiated);
        self.due(key, role, day, Timestamp(u64::MAX)).min_by_key(|(due, _)| *due)
    }

    /// Returns the latest beginning of a role that some enabled rule considers due at `now`.
    pub(crate) fn latest_due(&self, role: VersionRole, now: Timestamp, day: DayLength) -> Option<Timestamp> {
        let enabled = self.0.iter().filter(|rule| rule.is_enabled);
        enabled.filter_map(|rule| rule.latest_due(role, now, day)).max()
    }
}

/// A change of a bucket's lifecycle rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleChange {
    /// Adds a rule.
    Add(LifecycleRule),
    /// Replaces the rule with the same id. Its creation time and its id in S3 stay, and its form if prefix and tags do.
    Replace(LifecycleRule),
    /// Replaces all rules. One with the id in S3 of an earlier rule keeps that rule's id and creation time.
    ReplaceAll(Vec<LifecycleRule>),
    /// Removes a rule.
    Remove(RuleId),
}

impl LifecycleChange {
    /// Returns the rules after the change. `None` if there are none any more.
    ///
    /// # Errors
    /// [`EngineError::NoSuchLifecycleRule`] and [`EngineError::TooManyLifecycleRules`].
    pub(crate) fn apply(
        self,
        rules: Option<&LifecycleRules>,
    ) -> Result<Option<Arc<LifecycleRules>>, EngineError> {
        let mut rules = rules.map(|rules| rules.0.clone()).unwrap_or_default();
        let place = |rules: &[LifecycleRule], id| {
            rules.iter().position(|rule| rule.id == id).ok_or(EngineError::NoSuchLifecycleRule)
        };
        match self {
            Self::Add(_) if rules.len() >= LIFECYCLE_RULES_MAX => {
                return Err(EngineError::TooManyLifecycleRules);
            }
            Self::Add(rule) => rules.push(rule),
            Self::Replace(rule) => {
                let at = place(&rules, rule.id)?;
                rules[at] = rule.in_place_of(&rules[at]);
            }
            Self::ReplaceAll(new) if new.len() > LIFECYCLE_RULES_MAX => {
                return Err(EngineError::TooManyLifecycleRules);
            }
            Self::ReplaceAll(new) => {
                let before: HashMap<String, LifecycleRule> =
                    rules.into_iter().map(|rule| (rule.id_in_s3(), rule)).collect();
                let kept = |rule: LifecycleRule| match before.get(&rule.id_in_s3()) {
                    Some(LifecycleRule { id, s3_id, created_at, .. }) => {
                        LifecycleRule { id: *id, s3_id: s3_id.clone(), created_at: *created_at, ..rule }
                    }
                    None => rule,
                };
                rules = new.into_iter().map(kept).collect();
            }
            Self::Remove(id) => {
                rules.remove(place(&rules, id)?);
            }
        }
        Ok((!rules.is_empty()).then(|| Arc::new(LifecycleRules(rules))))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{DayLength, FilterForm, LifecycleChange, LifecycleRule, LifecycleRules, RuleId, VersionRole};
    use crate::error::EngineError;
    use crate::limits::LIFECYCLE_RULES_MAX;
    use crate::types::tags::Tags;
    use cairn_model::Timestamp;
    use proptest::prelude::*;

    const DAY: u64 = 86_400_000;
    const REAL: DayLength = DayLength(86_400);

    pub(crate) fn rule(prefix: &str, expiration: Option<u32>, noncurrent: Option<u32>) -> LifecycleRule {
        LifecycleRule {
            id: RuleId::new(Timestamp(1)).expect("random numbers"),
            s3_id: None,
            prefix: prefix.to_owned(),
            tags: Tags::default(),
            form: FilterForm::default(),
            expiration_days: expiration,
            noncurrent_days: noncurrent,
            newer_noncurrent_versions: 0,
            expired_delete_markers: false,
            abort_uploads_days: None,
            is_enabled: true,
            created_at: Timestamp(1),
        }
    }

    /// The example of AWS: non-current since 15 January 10:30 UTC, 3 days: removed on 19 January 00:00 UTC.
    #[test]
    fn age_ends_at_the_next_midnight() {
        // 2014-01-15T00:00:00Z
        let january_15 = 1_389_744_000_000;
        let since = Timestamp(january_15 + 10 * 3_600_000 + 30 * 60_000);
        assert_eq!(REAL.due_at(since, 3), Timestamp(january_15 + 4 * DAY));
    }

    #[test]
    fn exactly_midnight_is_due_at_once() {
        assert_eq!(REAL.due_at(Timestamp(10 * DAY), 1), Timestamp(11 * DAY));
        assert_eq!(REAL.due_at(Timestamp(10 * DAY + 1), 1), Timestamp(12 * DAY));
        assert_eq!(REAL.due_at(Timestamp(u64::MAX), 1).0 % 2, 1, "no overflow");
    }

    #[test]
    fn other_days_are_not_rounded() {
        assert_eq!(DayLength(2).due_at(Timestamp(1234), 3), Timestamp(7234));
    }

    #[test]
    fn earliest_of_several_rules_decides_and_disabled_ones_do_not_count() {
        let (slow, fast, other) =
            (rule("a/", Some(9), None), rule("a/b", Some(3), None), rule("x", Some(1), None));
        let mut disabled = rule("a", Some(1), None);
        disabled.is_enabled = false;
        let rules = LifecycleRules(vec![slow.clone(), fast.clone(), other, disabled]);
        let expires = |key: &[u8]| {
            let expires = rules.expiration_of(key, &Tags::default(), Timestamp(0), REAL);
            expires.map(|(due, rule)| (due, rule.id))
        };
        assert_eq!(expires(b"a/bc"), Some((Timestamp(3 * DAY), fast.id)));
        assert_eq!(expires(b"a/c"), Some((Timestamp(9 * DAY), slow.id)));
        assert_eq!(expires(b"ab"), None);
        let due: Vec<_> =
            rules.due(b"a/bc", (VersionRole::Current, Timestamp(0)), REAL, Timestamp(3 * DAY)).collect();
        assert_eq!(due.len(), 1);
    }

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        Tags::of_record(pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect())
    }

    #[test]
    fn rule_with_tags_is_about_objects_that_have_all_of_them() {
        let tagged = LifecycleRule { tags: tags(&[("a", "1"), ("b", "2")]), ..rule("", Some(1), None) };
        let rules = LifecycleRules(vec![tagged.clone(), rule("", Some(9), None)]);
        let days =
            |tags: &Tags| rules.expiration_of(b"k", tags, Timestamp(0), REAL).map(|(due, _)| due.0 / DAY);
        assert_eq!(days(&tags(&[("b", "2"), ("c", ""), ("a", "1")])), Some(1));
        for others in [&[][..], &[("a", "1")], &[("a", "1"), ("b", "3")], &[("a", "2"), ("b", "1")]] {
            assert_eq!(days(&tags(others)), Some(9), "{others:?}");
        }
        assert!(rules.have_tags());
        let disabled = LifecycleRule { is_enabled: false, ..tagged };
        assert!(!LifecycleRules(vec![disabled]).have_tags());
    }

    #[test]
    fn rules_that_replace_all_keep_the_ids_that_s3_clients_name() {
        let named = LifecycleRule { s3_id: Some("logs".into()), ..rule("a", Some(1), None) };
        let unnamed = rule("b", Some(1), None);
        let rules = LifecycleRules(vec![named.clone(), unnamed.clone(), rule("c", Some(1), None)]);
        let by_s3 = |id: Option<String>| LifecycleRule {
            s3_id: id,
            created_at: Timestamp(9),
            ..rule("new", Some(2), None)
        };
        let new = vec![by_s3(Some(unnamed.id.to_string())), by_s3(None), by_s3(Some("logs".into()))];
        let replaced =
            LifecycleChange::ReplaceAll(new.clone()).apply(Some(&rules)).expect("fits").expect("rules");
        let now: Vec<_> =
            replaced.iter().map(|rule| (rule.id, rule.s3_id.as_deref(), rule.created_at.0)).collect();
        assert_eq!(now, [(unnamed.id, None, 1), (new[1].id, None, 9), (named.id, Some("logs"), 1)]);
        assert!(replaced.iter().all(|rule| rule.prefix == "new"));
        let by_id = LifecycleRule { s3_id: None, ..named };
        let changed = LifecycleChange::Replace(by_id.clone()).apply(Some(&replaced)).expect("there");
        let s3_id = changed.expect("rules").get(by_id.id).and_then(|rule| rule.s3_id.clone());
        assert_eq!(s3_id.as_deref(), Some("logs"), "the management plane does not change it");
        assert_eq!(LifecycleChange::ReplaceAll(Vec::new()).apply(Some(&rules)), Ok(None));
        let too_many = LifecycleChange::ReplaceAll(vec![by_s3(None); LIFECYCLE_RULES_MAX + 1]);
        assert_eq!(too_many.apply(Some(&rules)), Err(EngineError::TooManyLifecycleRules));
    }

    #[test]
    fn lone_markers_go_with_expiration_or_at_once_but_never_by_noncurrent_rules_alone() {
        let due = |rule: &LifecycleRule| rule.due_at(VersionRole::LoneMarker, Timestamp(5), REAL);
        assert_eq!(due(&rule("", None, Some(1))), None);
        assert_eq!(due(&rule("", Some(2), None)), Some(Timestamp(3 * DAY)));
        let at_once = LifecycleRule { expired_delete_markers: true, ..rule("", Some(2), None) };
        assert_eq!(due(&at_once), Some(Timestamp(5)));
        let tagged = LifecycleRule { tags: tags(&[("a", "")]), ..rule("", Some(2), None) };
        assert_eq!(due(&tagged), None, "a marker has no tags");
        assert_eq!(tagged.latest_due(VersionRole::LoneMarker, Timestamp(9 * DAY), REAL), None);
    }

    #[test]
    fn rules_change_one_by_one_and_keep_their_creation_time() {
        let (first, second) = (rule("a", Some(1), None), rule("b", Some(1), None));
        let rules = LifecycleChange::Add(first.clone()).apply(None).expect("added").expect("a rule");
        let rules = LifecycleChange::Add(second.clone()).apply(Some(&rules)).expect("added").expect("rules");
        let changed = LifecycleRule { prefix: "c".into(), created_at: Timestamp(9), ..first.clone() };
        let rules = LifecycleChange::Replace(changed).apply(Some(&rules)).expect("there").expect("rules");
        assert_eq!(rules.get(first.id).map(|rule| (&*rule.prefix, rule.created_at.0)), Some(("c", 1)));
        let rules = LifecycleChange::Remove(first.id).apply(Some(&rules)).expect("there").expect("rules");
        assert_eq!(
            LifecycleChange::Remove(first.id).apply(Some(&rules)),
            Err(EngineError::NoSuchLifecycleRule)
        );
        assert_eq!(LifecycleChange::Remove(second.id).apply(Some(&rules)), Ok(None));
        let full = LifecycleRules(vec![first.clone(); LIFECYCLE_RULES_MAX]);
        assert_eq!(LifecycleChange::Add(second).apply(Some(&full)), Err(EngineError::TooManyLifecycleRules));
    }

    #[test]
    fn ids_are_uuids_of_version_7() {
        let id = RuleId::new(Timestamp(0x0123_4567_89AB)).expect("random numbers");
        let text = id.to_string();
        assert!(text.starts_with("01234567-89ab-7"), "{text}");
        assert_eq!(RuleId::parse(&text), Some(id));
        assert_eq!(RuleId::parse("00000000-0000-4000-8000-000000000000"), None);
    }

    proptest! {
        /// Both directions of the same calculation agree, otherwise a scan of the index would miss what is due.
        #[test]
        fn latest_due_is_the_last_beginning_that_is_due(since in 0u64..40_000_000_000, now in 0u64..80_000_000_000,
            days in 1u32..400, real: bool) {
            let day = if real { REAL } else { DayLength(7) };
            let is_due = day.due_at(Timestamp(since), days) <= Timestamp(now);
            let latest = day.latest_due(Timestamp(now), days);
            prop_assert_eq!(is_due, latest.is_some_and(|latest| since <= latest.0));
        }
    }
}
