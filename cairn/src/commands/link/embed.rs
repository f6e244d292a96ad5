//! `cairn embed`: URLs that pages of chosen origins can show.

use cairn_api::{CreateEmbed, EmbedVersion, NewEmbed, UpdateEmbed, WebOrigin};

use super::list::{LIMIT_DEFAULT, Selection, path_of_object};
use super::members::{LinkDisposition, expiry, removable, update};
use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::{command, noun, verbs};
use crate::commands::object::place::Place;
use crate::commands::resources::EMBEDS;
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;
use crate::quantity::ListLimit;
use crate::terminal::lines;

noun! {
    /// Manage embeds: URLs of images, video and audio that pages of chosen origins can show.
    struct Embed("embed"): EmbedCommand { Create, List, Show, Update, Url, Revoke, Delete }
}

command! {
    /// Create an embed. Print its URL, and HTML that shows it in a page.
    struct Create("create") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        place: Place,
        /// an origin whose pages may use it, such as https://www.example.com; may be repeated
        #[argh(option, arg_name = "origin")]
        origin: Vec<String>,
        /// when it stops working: a duration such as 30d, a date, or a time (default: never)
        #[argh(option, arg_name = "time")]
        expires: Option<Deadline>,
        /// a text to recognize it by
        #[argh(option, arg_name = "text")]
        label: Option<String>,
        /// this version (default: always the current one)
        #[argh(option, arg_name = "id")]
        version_id: Option<String>,
        /// inline (default) or attachment: whether browsers show the object or download it
        #[argh(option, arg_name = "word")]
        disposition: Option<LinkDisposition>,
    }
}

command! {
    /// List embeds, the newest first: of an object, of a bucket, or all.
    struct List("list") {
        /// a bucket, or an object as <bucket>/<key>
        #[argh(positional)]
        place: Option<Place>,
        /// only active, revoked or expired ones
        #[argh(option, arg_name = "word")]
        status: Option<EmbedStatus>,
        /// only those that this principal created
        #[argh(option, arg_name = "name")]
        created_by: Option<String>,
        /// maximum number of embeds, up to 100000 (default: 1000)
        #[argh(option, arg_name = "n", default = "LIMIT_DEFAULT")]
        limit: ListLimit,
    }
}

command! {
    /// Change an embed. What is not given does not change, nor does the URL.
    struct Update("update") {
        /// the embed's id
        #[argh(positional)]
        embed: String,
        /// an origin whose pages may use it; may be repeated; replaces all present origins
        #[argh(option, arg_name = "origin")]
        origin: Vec<String>,
        /// when it stops working: a duration such as 30d, a date, or a time
        #[argh(option, arg_name = "time")]
        expires: Option<Deadline>,
        /// remove the expiry
        #[argh(switch)]
        no_expiry: bool,
        /// a text to recognize it by
        #[argh(option, arg_name = "text")]
        label: Option<String>,
        /// remove the label
        #[argh(switch)]
        no_label: bool,
        /// inline or attachment: whether browsers show the object or download it
        #[argh(option, arg_name = "word")]
        disposition: Option<LinkDisposition>,
    }
}

verbs! {
    EMBEDS by {
        /// the embed's id
        embed
    }
    /// Show an embed, without its URL.
    show,
    /// Print the URL of an embed. This is recorded in the audit trail.
    url,
    /// Revoke an embed, permanently. Browsers that show it notice within a minute.
    revoke,
    /// Delete an embed with its counts. Its URL is then unknown.
    delete,
}

choice! {
    /// States of embeds.
    EmbedStatus = "active" | "revoked" | "expired"
}

impl Create {
    fn run(&self) -> Outcome {
        let path = path_of_object(&EMBEDS, &self.place)?;
        if self.origin.is_empty() {
            let message = "give at least one --origin, such as https://www.example.com";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let client = self.client()?;
        let pinned = |id: String| EmbedVersion { mode: "pinned".into(), version_id: Some(id.into()) };
        let request = CreateEmbed {
            label: self.label.clone().map(Into::into),
            allowed_origins: origins(&self.origin),
            disposition: self.disposition.map(LinkDisposition::body),
            expires_at: expiry(&client, self.expires.as_ref())?,
            version: self.version_id.clone().map(pinned),
        };
        let body = client.call(&Request::post(path).json(&request))?;
        client.print_as(&body, |NewEmbed { embed, url, snippet }: &NewEmbed| {
            lines(&format!("{url}\n\n{snippet}\n\n")) + &EMBEDS.text(embed)
        })
    }
}

fn origins(texts: &[String]) -> Vec<WebOrigin> {
    texts.iter().cloned().map(Into::into).collect()
}

impl List {
    fn run(&self) -> Outcome {
        let selection = Selection {
            place: self.place.as_ref(),
            status: self.status.map(|EmbedStatus(word)| word),
            created_by: self.created_by.as_deref(),
            limit: self.limit,
        };
        selection.print(&EMBEDS, &self.client()?)
    }
}

impl Update {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let expires_at = removable("expires at", expiry(&client, self.expires.as_ref())?, self.no_expiry)?;
        let changes = UpdateEmbed {
            label: removable("label", self.label.clone().map(Into::into), self.no_label)?,
            allowed_origins: Some(origins(&self.origin)).filter(|origins| !origins.is_empty()),
            expires_at,
            disposition: self.disposition.map(LinkDisposition::body),
        };
        update(&EMBEDS, &client, &self.embed, &changes)
    }
}
