//! Compares what documents and their translation allow, over a grid.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use cairn_identity::policy::{Action, Resource, Rights, StatementDraft};
use serde::Serialize;

use super::actions::{ACTIONS, SourceAction, Target, WITHOUT_USE, Weight};
use super::source::{Asked, Document, Effect, Statement, allow};
use super::statements::compile;

/// Most buckets and keys of a grid. A document of the usual size has fewer.
const PLACES_MAX: usize = 400;
/// Most addresses of clients of a grid.
const CLIENTS_MAX: usize = 8;
/// Most resources that a difference names.
const NAMED_MAX: usize = 5;
/// A bucket and a key that no document is expected to name.
const OTHER_BUCKET: &str = "some-other-bucket";
const OTHER_KEY: &str = "some/other/key";
/// An address that no document is expected to name (RFC 5737).
const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 77));

/// Actions of the source that are allowed here and not there, or the reverse.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Difference {
    /// The action here that includes them.
    pub(crate) includes: &'static str,
    pub(crate) actions: Vec<&'static str>,
    /// Some of the resources of the documents that they differ on, as `<bucket>` or `<bucket>/<key>`.
    pub(crate) resources: Vec<String>,
}

/// The differences between documents and their translation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Differences {
    /// Allowed here and not at the source. All of it is included in an action that the source allows.
    pub(crate) wider: Vec<Difference>,
    /// Allowed at the source and not here: what an action is for, or what a document names.
    pub(crate) narrower: Vec<Difference>,
    /// Allowed at the source and not here, and hardly missed: what only a `*` among the actions includes, and the location of
    /// buckets, which is the same for all of them here.
    pub(crate) left_out: Vec<Difference>,
}

/// The rights at the source: documents of which one must allow, and for service accounts a second group of which one must allow
/// as well.
pub(crate) struct Source<'d> {
    pub(crate) documents: &'d [Document],
    pub(crate) session: Option<&'d [Document]>,
}

/// Compares. Both are evaluated for each action of the source that has a counterpart.
///
/// # Errors
/// The translation would allow something that the source allows in no form.
pub(crate) fn compare(source: &Source<'_>, statements: &[StatementDraft]) -> Result<Differences, String> {
    let policy = compile(statements)?;
    let rights = Rights::compile(&policy);
    let grid = Grid::new(source);
    let (mut wider, mut narrower, mut left_out) = (Found::new(), Found::new(), Found::new());
    for place in &grid.places {
        for action in ACTIONS {
            if place.key.is_some() != (action.target == Target::Object) {
                continue;
            }
            for client in &grid.clients {
                let there = source.allows(action.name, place, *client);
                let found = match (there, allows_here(&rights, action, place, *client)) {
                    (true, false) if source.misses(action) => &mut narrower,
                    (true, false) => &mut left_out,
                    (false, true) if source.allows_main(action, place, *client) => &mut wider,
                    (false, true) => {
                        return Err(format!(
                            "its translation would allow {} on {place}, which the source does not",
                            action.name
                        ));
                    }
                    _ => continue,
                };
                found.entry(action.name).or_default().extend(source.resources(place));
            }
        }
    }
    Ok(Differences { wider: summed_up(wider), narrower: summed_up(narrower), left_out: summed_up(left_out) })
}

/// Returns whether statements here allow what a request of the source does.
fn allows_here(rights: &Rights, action: &SourceAction, place: &Place, client: IpAddr) -> bool {
    let resource = match &place.key {
        Some(key) if !action.here.is_on_buckets() => Resource::Object(&place.bucket, key),
        _ => Resource::Bucket(&place.bucket),
    };
    rights.decide(action.here, resource, Some(client)).is_allowed()
}

impl Source<'_> {
    fn allows(&self, action: &str, place: &Place, client: IpAddr) -> bool {
        let asked = Asked { action, bucket: &place.bucket, key: place.key.as_deref(), client };
        allow(self.documents, &asked) && self.session.is_none_or(|session| allow(session, &asked))
    }

    fn statements(&self) -> impl Iterator<Item = &Statement> {
        let documents = self.documents.iter().chain(self.session.into_iter().flatten());
        documents.flat_map(|document| &document.statements)
    }

    /// Returns whether somebody who wrote these documents would miss an action.
    fn misses(&self, action: &SourceAction) -> bool {
        let is_named = || {
            self.statements().any(|statement| statement.actions.iter().any(|pattern| pattern == action.name))
        };
        action.name != WITHOUT_USE && (action.weight == Weight::Main || is_named())
    }

    /// Returns the resources that make the source allow something at a place.
    fn resources(&self, place: &Place) -> Vec<String> {
        let allowing = self.statements().filter(|statement| statement.effect == Effect::Allow);
        let resources = allowing.flat_map(|statement| &statement.resources);
        resources
            .filter(|resource| Statement::is_about(resource, &place.bucket, place.key.as_deref()))
            .cloned()
            .collect()
    }

    /// Returns whether the source allows what the action here is for that includes `action`.
    fn allows_main(&self, action: &SourceAction, place: &Place, client: IpAddr) -> bool {
        let bucket = Place { bucket: place.bucket.clone(), key: None };
        ACTIONS.iter().filter(|main| main.here == action.here && main.weight == Weight::Main).any(|main| {
            self.allows(main.name, if main.target == Target::Bucket { &bucket } else { place }, client)
        })
    }
}

/// A bucket, or a key in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    bucket: String,
    key: Option<String>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.key {
            Some(key) => write!(out, "{}/{key}", self.bucket),
            None => out.write_str(&self.bucket),
        }
    }
}

/// The points of the comparison: places and client addresses.
struct Grid {
    places: BTreeSet<Place>,
    clients: BTreeSet<IpAddr>,
}

impl Grid {
    /// Takes places inside, beside and outside of each resource of the documents.
    fn new(source: &Source<'_>) -> Self {
        let mut grid = Self { places: BTreeSet::new(), clients: BTreeSet::from([OTHER_CLIENT]) };
        grid.add(OTHER_BUCKET, OTHER_KEY);
        for statement in source.statements() {
            for pattern in &statement.resources {
                grid.add_places_of(pattern);
            }
            let addresses = statement.networks.iter().filter_map(|network| {
                let text = network.to_string();
                text.split('/').next().and_then(|address| address.parse::<IpAddr>().ok())
            });
            for address in addresses {
                if grid.clients.len() < CLIENTS_MAX {
                    grid.clients.insert(address);
                }
            }
        }
        grid
    }

    fn add_places_of(&mut self, pattern: &str) {
        let (bucket, key) = pattern.split_once('/').unwrap_or((pattern, "*"));
        for filling in ["", "x1"] {
            let bucket = bucket.replace(['*', '?'], filling);
            // The shortest and the longest names of buckets, so that the server could have this one.
            let bucket = if bucket.len() < 3 { format!("{bucket}xyz") } else { bucket };
            let key_of = |filling: &str| key.replace(['*', '?'], filling);
            for key in
                [key_of(""), key_of("a"), key_of("a/b.txt"), format!("{}2", key_of("")), OTHER_KEY.to_owned()]
            {
                self.add(&bucket, &key);
            }
        }
    }

    fn add(&mut self, bucket: &str, key: &str) {
        if self.places.len() + 2 > PLACES_MAX {
            return;
        }
        self.places.insert(Place { bucket: bucket.to_owned(), key: None });
        if !key.is_empty() {
            self.places.insert(Place { bucket: bucket.to_owned(), key: Some(key.to_owned()) });
        }
    }
}

/// Resources by action.
type Found = BTreeMap<&'static str, BTreeSet<String>>;

/// Groups actions that differ on the same resources, and that the same action here includes.
fn summed_up(found: Found) -> Vec<Difference> {
    let mut groups: BTreeMap<(usize, BTreeSet<String>), Vec<&'static str>> = BTreeMap::new();
    for (name, resources) in found {
        let here = ACTIONS.iter().find(|action| action.name == name).map(|action| action.here);
        let order = Action::ALL.iter().position(|action| Some(*action) == here).unwrap_or_default();
        let names = groups.entry((order, resources)).or_default();
        // Some actions are written in two ways.
        if !names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    let difference = |((order, resources), actions): ((usize, BTreeSet<String>), _)| Difference {
        includes: Action::ALL[order].name(),
        actions,
        resources: resources.into_iter().take(NAMED_MAX).collect(),
    };
    groups.into_iter().map(difference).collect()
}
