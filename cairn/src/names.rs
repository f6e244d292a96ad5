//! Ids, and the names that stand for them on the command line.

use serde_json::Value;

use crate::client::{Client, Request, rows};
use crate::failure::Failure;

/// A kind of things with an id and a name.
pub(crate) struct Kind {
    /// The route that lists them.
    pub(crate) path: &'static str,
    /// Under which name its answer holds them.
    pub(crate) list: &'static str,
    /// One of them, in words.
    pub(crate) noun: &'static str,
    /// The command that shows them.
    pub(crate) command: &'static str,
}

impl Kind {
    /// The route of the one that is meant: by its id, or by a name that no other has.
    pub(crate) fn path_of(&self, client: &Client, wanted: &str) -> Result<String, Failure> {
        self.id_of(client, wanted).map(|id| format!("{}/{id}", self.path))
    }

    /// The id of the one that is meant. What has the form of an id is one, and is not looked up.
    pub(crate) fn id_of(&self, client: &Client, wanted: &str) -> Result<String, Failure> {
        if is_id(wanted) {
            return Ok(wanted.to_owned());
        }
        let body = client.call(&Request::get(self.path))?;
        let named: Vec<&Value> = rows(&body, self.list)?.iter().filter(|one| one["name"] == wanted).collect();
        let Self { noun, command, .. } = self;
        let next = format!("`cairn {command}` shows names and ids");
        match named[..] {
            [one] => id(one).ok_or_else(|| format!("the answer holds no id for the {noun} {wanted}").into()),
            [] => Err(format!("no {noun} has the name {wanted}, and it is no id\n  {next}").into()),
            _ => {
                let count = named.len();
                Err(format!("the name {wanted} stands for {count}: name the {noun} by its id\n  {next}")
                    .into())
            }
        }
    }
}

/// The id of a record, if it has one.
pub(crate) fn id(record: &Value) -> Option<String> {
    record["id"].as_str().filter(|id| is_id(id)).map(str::to_owned)
}

/// Whether a text has the form of an id, a UUID. It can then stand in a path as it is.
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
    fn an_id_is_a_uuid_and_nothing_that_only_looks_like_one() {
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
