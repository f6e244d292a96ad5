//! Finds resources of the management plane by id or by name.

use serde_json::Value;

use crate::client::{Client, Request, rows};
use crate::failure::Failure;
use crate::quantity::counted;

/// A kind of resource that has ids and names.
pub(crate) struct ResourceKind {
    /// The route that lists them.
    pub(crate) path: &'static str,
    /// The member of its response that contains the list.
    pub(crate) list: &'static str,
    /// The name of the kind in messages.
    pub(crate) noun: &'static str,
    /// The command that lists them.
    pub(crate) command: &'static str,
}

impl ResourceKind {
    /// Returns the route of a resource that is given by its id or by a unique name.
    pub(crate) fn path_of(&self, client: &Client, wanted: &str) -> Result<String, Failure> {
        self.id_of(client, wanted).map(|id| format!("{}/{id}", self.path))
    }

    /// Returns the id of a resource that is given by its id or by a unique name. Text in the form of an id is not looked up.
    pub(crate) fn id_of(&self, client: &Client, wanted: &str) -> Result<String, Failure> {
        if is_id(wanted) {
            return Ok(wanted.to_owned());
        }
        let body = client.call(&Request::get(self.path))?;
        let named: Vec<&Value> = rows(&body, self.list)?.iter().filter(|one| one["name"] == wanted).collect();
        let Self { noun, command, .. } = self;
        let next = format!("`cairn {command}` shows names and ids");
        match named[..] {
            [one] => {
                id(one).ok_or_else(|| format!("the response contains no id for the {noun} {wanted}").into())
            }
            [] => Err(format!("no {noun} has the id or name {wanted}\n  {next}").into()),
            _ => {
                let count = counted(named.len() as u64, noun);
                Err(format!("{count} have the name {wanted}: use the id of the {noun}\n  {next}").into())
            }
        }
    }
}

/// Returns the id of a record, if it has one.
pub(crate) fn id(record: &Value) -> Option<String> {
    record["id"].as_str().filter(|id| is_id(id)).map(str::to_owned)
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
