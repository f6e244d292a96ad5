//! Kinds of resources of the management plane: how they are named, listed, shown and changed.

use cairn_api::{LinkUrl, SetStatus};
use cairn_http1::encode_strict;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Request, read};
use crate::failure::{Failure, Outcome};
use crate::output::table::{Column, Columns, record};
use crate::quantity::counted;
use crate::terminal::plain;

/// Finds the route of the resource that arguments of a command name.
type Locate<T> = fn(&Resource<T>, &Client, &[&str]) -> Result<String, Failure>;

/// A kind of resource.
pub(crate) struct Resource<T: 'static> {
    /// The name of one in messages.
    pub(crate) noun: &'static str,
    /// The command that lists them.
    pub(crate) command: &'static str,
    /// The route that lists them, and below which each has its own.
    pub(crate) path: &'static str,
    /// The member of a list's response that contains them.
    pub(crate) member: &'static str,
    /// The way in which a command names one.
    pub(crate) locate: Locate<T>,
    /// All columns. Lists and records have some of them.
    pub(crate) columns: Columns<T>,
    /// The labels of a list, separated by commas; empty for all.
    pub(crate) listed: &'static str,
    /// The labels of a record, likewise.
    pub(crate) shown: &'static str,
    /// Formats what follows a record.
    pub(crate) details: fn(&T) -> String,
    /// The text after the name of one that was disabled.
    pub(crate) disabled: &'static str,
}

impl<T: DeserializeOwned> Resource<T> {
    /// A kind of resource without names, whose ids are sent as they are given.
    pub(crate) const DEFAULT: Self = Self {
        noun: "",
        command: "",
        path: "",
        member: "",
        locate: |resource, _, names| Ok(resource.path_of(names.last().copied().unwrap_or_default())),
        columns: &[],
        listed: "",
        shown: "",
        details: |_| String::new(),
        disabled: "is disabled",
    };

    /// Returns the route of a resource.
    pub(crate) fn path_of(&self, id: &str) -> String {
        format!("{}/{}", self.path, encode_strict(id))
    }

    /// Returns the route of a resource that is given by its id or by a unique name.
    pub(crate) fn by_id_or_name(&self, client: &Client, names: &[&str]) -> Result<String, Failure> {
        self.id_of(client, names.last().copied().unwrap_or_default()).map(|id| self.path_of(&id))
    }

    /// Returns the id of a resource that is given by its id or by a unique name. Text in the form of an id is not looked up.
    pub(crate) fn id_of(&self, client: &Client, wanted: &str) -> Result<String, Failure> {
        if is_id(wanted) {
            return Ok(wanted.to_owned());
        }
        let body = client.call(&Request::get(self.path))?;
        let mut named: Vec<Named> = read(&body[self.member])?;
        named.retain(|one| one.name == wanted);
        let Self { noun, command, .. } = self;
        let next = format!("`cairn {command}` shows names and ids");
        match &named[..] {
            [Named { id, .. }] if is_id(id) => Ok(id.clone()),
            [_] => Err(format!("the response contains no id for the {noun} {wanted}").into()),
            [] => Err(format!("no {noun} has the id or name {wanted}\n  {next}").into()),
            _ => {
                let count = counted(named.len() as u64, noun);
                Err(format!("{count} have the name {wanted}: use the id of the {noun}\n  {next}").into())
            }
        }
    }

    /// Returns the columns with these labels, which commas separate; without labels, all.
    pub(crate) fn select(&self, labels: &str) -> Vec<Column<T>> {
        if labels.is_empty() {
            return self.columns.to_vec();
        }
        let column = |label| {
            let found = self.columns.iter().find(|(name, _)| *name == label);
            *found.unwrap_or_else(|| unreachable!("a {} has no column {label}", self.noun))
        };
        labels.split(", ").map(column).collect()
    }

    /// Formats one.
    pub(crate) fn text(&self, one: &T) -> String {
        record(&self.select(self.shown), one) + &(self.details)(one)
    }

    /// Prints all.
    pub(crate) fn list(&self, client: &Client) -> Outcome {
        client.list(self.path, self.member, &self.select(self.listed))
    }

    /// Prints the one with these names: its own, after those of what it belongs to.
    pub(crate) fn show(&self, client: &Client, names: &[&str]) -> Outcome {
        self.print(client, &Request::get((self.locate)(self, client, names)?))
    }

    /// Sends a request, and prints the resource that it is answered with.
    pub(crate) fn print(&self, client: &Client, request: &Request) -> Outcome {
        client.print_as(&client.call(request)?, |one| self.text(one))
    }

    /// Prints the URL of a link, and nothing else.
    pub(crate) fn url(&self, client: &Client, names: &[&str]) -> Outcome {
        let body = client.call(&Request::get((self.locate)(self, client, names)? + "/url"))?;
        client.print_as(&body, |LinkUrl { url }| format!("{}\n", plain(url)))
    }

    pub(crate) fn enable(&self, client: &Client, names: &[&str]) -> Outcome {
        let request = |path| Request::put(path + "/status").json(&SetStatus { enabled: true });
        self.change(client, names, request, "is enabled")
    }

    pub(crate) fn disable(&self, client: &Client, names: &[&str]) -> Outcome {
        let request = |path| Request::put(path + "/status").json(&SetStatus { enabled: false });
        self.change(client, names, request, self.disabled)
    }

    pub(crate) fn revoke(&self, client: &Client, names: &[&str]) -> Outcome {
        self.change(client, names, |path| Request::post(path + "/revoke"), "is revoked")
    }

    pub(crate) fn delete(&self, client: &Client, names: &[&str]) -> Outcome {
        self.change(client, names, Request::delete, "was deleted")
    }

    /// Sends a request to the route of a resource, and says what was done with it.
    fn change(
        &self,
        client: &Client,
        names: &[&str],
        request: impl Fn(String) -> Request,
        done: &str,
    ) -> Outcome {
        let path = (self.locate)(self, client, names)?;
        let name = names.last().copied().unwrap_or_default();
        client.change(&request(path), &format!("{} {name} {done}", self.noun))
    }
}

/// The id and the name of a resource.
#[derive(Deserialize)]
struct Named {
    id: String,
    name: String,
}

/// Returns whether a text has the form of an id, a UUID. Such a text needs no encoding in a path.
pub(crate) fn is_id(text: &str) -> bool {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let fits = |(place, byte): (usize, u8)| match byte {
        b'-' => HYPHENS.contains(&place),
        byte => byte.is_ascii_hexdigit() && !HYPHENS.contains(&place),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_is_an_id() {
        assert!(is_id("019aa5b8-0000-7000-8000-00000000000F"));
        for name in [
            "",
            "backup",
            "019aa5b8-0000-7000-8000-00000000000",
            "019aa5b8-0000-7000-8000-00000000000f0",
            "019aa5b800000-7000-8000-00000000000f",
            "019aa5b8-0000-7000-8000-00000000000/",
            "------------------------------------",
        ] {
            assert!(!is_id(name), "{name}");
        }
    }
}
