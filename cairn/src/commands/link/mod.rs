//! `cairn share` and `cairn embed`: manage links, the URLs that give access to one object.
//!
//! What both kinds have in common is here.

mod embed;
mod password;
mod share;

use cairn_http1::encode_strict;
use serde_json::{Map, Value, json};

use crate::choice::choice;
use crate::client::{Client, Request, rows};
use crate::commands::object::place::{Place, route};
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;
use crate::output::print_error;
use crate::output::table::{Columns, record, table, text};
use crate::quantity::{ListLimit, Whole};
use crate::terminal::word;

pub(crate) use embed::Embed;
pub(crate) use password::with_password_prompt;
pub(crate) use share::Share;

/// A kind of links.
struct LinkKind {
    noun: &'static str,
    /// The list of a response, and the last part of the route of all links.
    list: &'static str,
    /// The route of an object's links.
    of_object: &'static str,
    /// The columns of a list.
    listed: Columns,
    /// The lines of one link.
    shown: Columns,
}

choice! {
    /// Whether browsers show the object of a link or download it.
    LinkDisposition = "inline" | "attachment"
}

/// Which links are listed.
struct Selection<'s> {
    place: Option<&'s Place>,
    status: Option<&'s str>,
    created_by: Option<&'s str>,
    limit: ListLimit,
}

/// Links that are listed by default.
const LIMIT_DEFAULT: ListLimit = Whole(1000);

impl LinkKind {
    /// Returns the route of a link.
    fn path_of(&self, id: &str) -> String {
        format!("/api/v1/{}/{}", self.list, encode_strict(id))
    }

    /// Returns the route of an object's links.
    fn path_of_object(&self, place: &Place) -> Result<String, Failure> {
        Ok(route(&place.bucket, self.of_object, &place.one()?))
    }

    fn show(&self, client: &Client, id: &str) -> Outcome {
        client.show(&Request::get(self.path_of(id)), self.shown)
    }

    fn text(&self, link: &Value) -> String {
        record(self.shown, link)
    }

    /// Prints the URL alone.
    fn url(&self, client: &Client, id: &str) -> Outcome {
        let body = client.call(&Request::get(format!("{}/url", self.path_of(id))))?;
        client.print(&body, || format!("{}\n", word(&body["url"])))
    }

    fn revoke(&self, client: &Client, id: &str) -> Outcome {
        let done = format!("{} {id} is revoked", self.noun);
        client.change(&Request::post(format!("{}/revoke", self.path_of(id))), &done)
    }

    fn delete(&self, client: &Client, id: &str) -> Outcome {
        client.change(&Request::delete(self.path_of(id)), &format!("{} {id} was deleted", self.noun))
    }

    fn update(&self, client: &Client, id: &str, changes: &Map<String, Value>) -> Outcome {
        let body = client.call(&Request::patch(self.path_of(id)).json(&json!(changes)))?;
        client.print(&body, || self.text(&body))
    }

    /// Lists the links of an object, of a bucket, or all.
    fn list(&self, client: &Client, selection: &Selection<'_>) -> Outcome {
        let limit = selection.limit.length();
        let (mut links, is_complete) = match selection.place {
            Some(place) if !place.key.is_empty() => (self.of_object(client, place, selection)?, true),
            _ => self.pages(client, selection)?,
        };
        let is_truncated = !is_complete || links.len() > limit;
        links.truncate(limit);
        let body = json!({self.list: links, "truncated": is_truncated});
        client.print(&body, || table(self.listed, &links))?;
        if is_truncated {
            print_error("there are more entries: --limit shows more\n");
        }
        Ok(())
    }

    fn of_object(
        &self,
        client: &Client,
        place: &Place,
        selection: &Selection<'_>,
    ) -> Result<Vec<Value>, Failure> {
        let body = client.call(&Request::get(self.path_of_object(place)?))?;
        let is =
            |link: &Value, name: &str, wanted: Option<&str>| wanted.is_none_or(|text| link[name] == text);
        let matches = |link: &&Value| {
            is(link, "status", selection.status) && is(link, "created_by", selection.created_by)
        };
        Ok(rows(&body, self.list)?.iter().filter(matches).cloned().collect())
    }

    /// Reads pages until there are enough links. Returns them, and whether there are no more.
    fn pages(&self, client: &Client, selection: &Selection<'_>) -> Result<(Vec<Value>, bool), Failure> {
        let mut parameters = vec![("limit", LIMIT_DEFAULT.0.min(selection.limit.0).to_string())];
        let bucket = selection.place.map(|place| place.bucket.as_str());
        for (name, value) in
            [("bucket", bucket), ("status", selection.status), ("created_by", selection.created_by)]
        {
            parameters.extend(value.map(|value| (name, encode_strict(value))));
        }
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let first = format!("/api/v1/{}?{}", self.list, parameters.join("&"));
        let (mut links, mut next) = (Vec::new(), None::<String>);
        loop {
            let continuation = next
                .as_ref()
                .map_or_else(String::new, |token| format!("&continuation_token={}", encode_strict(token)));
            let body = client.call(&Request::get(format!("{first}{continuation}")))?;
            links.extend_from_slice(rows(&body, self.list)?);
            let following = body["next_continuation_token"].as_str().map(str::to_owned);
            if following.is_some() && following == next {
                return Err("the server returned the same page twice".into());
            }
            if following.is_none() || links.len() >= selection.limit.length() {
                return Ok((links, following.is_none()));
            }
            next = following;
        }
    }
}

/// Members of a request that creates or changes a link.
struct Members(Map<String, Value>);

impl Members {
    fn new() -> Self {
        Self(Map::new())
    }

    /// Sets a member if there is a value.
    fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a member to null if it is removed.
    fn remove(&mut self, name: &str, is_removed: bool) -> Result<(), Failure> {
        if is_removed && self.0.contains_key(name) {
            let message = format!("{} cannot be set and removed at the same time", name.replace('_', " "));
            return Err(Failure::WrongUsage(message));
        }
        self.set(name, is_removed.then_some(Value::Null));
        Ok(())
    }

    /// Sets the expiry. A duration counts from the time of the server.
    fn expire(&mut self, client: &Client, expires: Option<&Deadline>) -> Outcome {
        let end = match expires {
            Some(end @ Deadline::In(_)) => Some(end.from(&client.server_now()?)),
            Some(Deadline::At(time)) => Some(time.clone()),
            None => None,
        };
        self.set("expires_at", end);
        Ok(())
    }

    /// Returns the members, of which a change needs at least one.
    fn changes(self) -> Result<Map<String, Value>, Failure> {
        if self.0.is_empty() {
            return Err(Failure::WrongUsage("give at least one option that changes something".to_owned()));
        }
        Ok(self.0)
    }
}

/// Formats the version of a link.
fn version_text(version: &Value) -> String {
    if version.is_null() { "current".to_owned() } else { text(version) }
}

/// Formats the place of a link's object.
fn place_text(link: &Value) -> String {
    format!("{}/{}", word(&link["bucket"]), word(&link["key"]))
}
