//! Lists links: of an object, of a bucket, or all.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::pages::{PAGE_ENTRIES_MAX, PagedList, Pages};
use crate::client::resource::Resource;
use crate::client::{Client, Request, query, rows};
use crate::commands::object::place::{Place, route};
use crate::failure::{Failure, Outcome};
use crate::output::print_error;
use crate::quantity::{ListLimit, Whole};

/// Links that are listed by default.
pub(super) const LIMIT_DEFAULT: ListLimit = Whole(1000);

/// A selection of links.
pub(super) struct Selection<'s> {
    pub(super) place: Option<&'s Place>,
    pub(super) status: Option<&'s str>,
    pub(super) created_by: Option<&'s str>,
    pub(super) limit: ListLimit,
}

/// Returns the route of an object's links of a kind.
pub(super) fn path_of_object<T: DeserializeOwned>(
    kind: &Resource<T>,
    place: &Place,
) -> Result<String, Failure> {
    Ok(route(&place.bucket, &format!("object-{}", kind.member), &place.one()?))
}

impl Selection<'_> {
    /// Prints the selected links of a kind.
    pub(super) fn print<T: DeserializeOwned>(&self, kind: &Resource<T>, client: &Client) -> Outcome {
        let (mut links, is_complete) = match self.place {
            Some(place) if !place.key.is_empty() => (self.of_object(kind, client, place)?, true),
            _ => self.pages(kind, client)?,
        };
        let limit = self.limit.length();
        let is_truncated = !is_complete || links.len() > limit;
        links.truncate(limit);
        let body = json!({kind.member: links, "truncated": is_truncated});
        client.print_list(&body, kind.member, &kind.select(kind.listed))?;
        if is_truncated {
            print_error("there are more entries: --limit shows more\n");
        }
        Ok(())
    }

    /// Returns the selected links of an object, which the server sends all at once.
    fn of_object<T: DeserializeOwned>(
        &self,
        kind: &Resource<T>,
        client: &Client,
        place: &Place,
    ) -> Result<Vec<Value>, Failure> {
        let body = client.call(&Request::get(path_of_object(kind, place)?))?;
        let is =
            |link: &Value, name: &str, wanted: Option<&str>| wanted.is_none_or(|text| link[name] == text);
        let matches =
            |link: &&Value| is(link, "status", self.status) && is(link, "created_by", self.created_by);
        Ok(rows(&body, kind.member)?.iter().filter(matches).cloned().collect())
    }

    /// Reads pages until there are enough links. Returns them, and whether there are no more.
    fn pages<T: DeserializeOwned>(
        &self,
        kind: &Resource<T>,
        client: &Client,
    ) -> Result<(Vec<Value>, bool), Failure> {
        let page = PAGE_ENTRIES_MAX.min(self.limit.0).to_string();
        let parameters = query([
            ("limit", Some(page.as_str())),
            ("bucket", self.place.map(|place| place.bucket.as_str())),
            ("status", self.status),
            ("created_by", self.created_by),
        ]);
        let list = PagedList::by_token(kind.path, kind.member);
        let mut pages = Pages::new(client, list, parameters);
        let mut body = pages.collect(self.limit.length())?;
        Ok((list.take(&mut body), pages.is_over()))
    }
}
