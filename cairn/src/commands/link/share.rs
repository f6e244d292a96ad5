//! `cairn share`: URLs for people, with an optional password, expiry and limit of downloads.

use super::password::PasswordOptions;
use super::{LIMIT_DEFAULT, LinkDisposition, LinkKind, Members, Selection, place_text, version_text};
use crate::choice::choice;
use crate::client::Request;
use crate::commands::macros::{command, noun};
use crate::commands::object::place::Place;
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;
use crate::output::table::text;
use crate::quantity::{ListLimit, Whole};
use crate::terminal::word;

noun! {
    /// Manage shares: URLs for people that give access to one object, with an optional password and expiry.
    struct Share("share"): ShareCommand { Create, List, Show, Update, Url, Revoke, Delete }
}

command! {
    /// Create a share and print its URL.
    struct Create("create") {
        /// the object, as <bucket>/<key>
        #[argh(positional)]
        place: Place,
        /// a password that visitors must give; - means standard input; without a value, it is asked for. Other users of this
        /// machine can see a value while the command runs
        #[argh(option, arg_name = "password")]
        password: Option<String>,
        /// read the password from the first line of standard input
        #[argh(switch)]
        password_stdin: bool,
        /// ask for the password on the terminal
        #[argh(switch)]
        ask_password: bool,
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
        /// downloads after which it stops working (default: no limit)
        #[argh(option, arg_name = "n")]
        maximum_downloads: Option<Downloads>,
    }
}

command! {
    /// List shares, the newest first: of an object, of a bucket, or all.
    struct List("list") {
        /// a bucket, or an object as <bucket>/<key>
        #[argh(positional)]
        place: Option<Place>,
        /// only active, revoked, expired or exhausted ones
        #[argh(option, arg_name = "word")]
        status: Option<ShareStatus>,
        /// only those that this principal created
        #[argh(option, arg_name = "name")]
        created_by: Option<String>,
        /// maximum number of shares, up to 100000 (default: 1000)
        #[argh(option, arg_name = "n", default = "LIMIT_DEFAULT")]
        limit: ListLimit,
    }
}

command! {
    /// Show a share, without its URL.
    struct Show("show") {
        /// the share's id
        #[argh(positional)]
        share: String,
    }
}

command! {
    /// Change a share. What is not given stays. A new password ends the access of visitors who gave the previous one.
    struct Update("update") {
        /// the share's id
        #[argh(positional)]
        share: String,
        /// a new password; - means standard input; without a value, it is asked for
        #[argh(option, arg_name = "password")]
        password: Option<String>,
        /// read the new password from the first line of standard input
        #[argh(switch)]
        password_stdin: bool,
        /// ask for the new password on the terminal
        #[argh(switch)]
        ask_password: bool,
        /// no password is needed any more
        #[argh(switch)]
        no_password: bool,
        /// when it stops working: a duration such as 30d, a date, or a time
        #[argh(option, arg_name = "time")]
        expires: Option<Deadline>,
        /// it does not expire any more
        #[argh(switch)]
        no_expiry: bool,
        /// a text to recognize it by
        #[argh(option, arg_name = "text")]
        label: Option<String>,
        /// remove the label
        #[argh(switch)]
        no_label: bool,
        /// downloads after which it stops working, counted from its creation
        #[argh(option, arg_name = "n")]
        maximum_downloads: Option<Downloads>,
        /// any number of downloads
        #[argh(switch)]
        no_maximum_downloads: bool,
    }
}

command! {
    /// Print the URL of a share. This is recorded in the audit trail.
    struct Url("url") {
        /// the share's id
        #[argh(positional)]
        share: String,
    }
}

command! {
    /// Revoke a share, permanently. The next request of a visitor is refused.
    struct Revoke("revoke") {
        /// the share's id
        #[argh(positional)]
        share: String,
    }
}

command! {
    /// Delete a share with its counts. Its URL is then unknown.
    struct Delete("delete") {
        /// the share's id
        #[argh(positional)]
        share: String,
    }
}

/// A number of downloads. JSON numbers are exact up to here.
type Downloads = Whole<1, 9_007_199_254_740_991>;

choice! {
    /// States of shares.
    ShareStatus = "active" | "revoked" | "expired" | "exhausted"
}

const SHARES: LinkKind = LinkKind {
    noun: "share",
    list: "shares",
    of_object: "object-shares",
    listed: &[
        ("label", |share| text(&share["label"])),
        ("object", place_text),
        ("version", |share| version_text(&share["version_id"])),
        ("status", |share| text(&share["status"])),
        ("password", |share| text(&share["password_protected"])),
        ("expires", |share| text(&share["expires_at"])),
        ("downloads", |share| text(&share["access_count"])),
        ("created by", |share| text(&share["created_by"])),
        ("id", |share| text(&share["id"])),
    ],
    shown: &[
        ("id", |share| text(&share["id"])),
        ("object", place_text),
        ("version", |share| version_text(&share["version_id"])),
        ("label", |share| text(&share["label"])),
        ("status", |share| text(&share["status"])),
        ("password", |share| text(&share["password_protected"])),
        ("disposition", |share| text(&share["disposition"])),
        ("expires", |share| text(&share["expires_at"])),
        ("downloads", |share| text(&share["access_count"])),
        ("maximum downloads", |share| text(&share["maximum_downloads"])),
        ("last download", |share| text(&share["last_accessed_at"])),
        ("created", |share| text(&share["created_at"])),
        ("created by", |share| text(&share["created_by"])),
    ],
};

impl Create {
    fn run(&self) -> Outcome {
        let path = SHARES.path_of_object(&self.place)?;
        let client = self.client()?;
        let mut members = Members::new();
        members.expire(&client, self.expires.as_ref())?;
        let options = PasswordOptions {
            given: self.password.as_deref(),
            is_on_stdin: self.password_stdin,
            is_asked: self.ask_password,
        };
        members.set("password", options.read()?);
        members.set("label", self.label.clone());
        members.set("version_id", self.version_id.clone());
        members.set("disposition", self.disposition.map(|LinkDisposition(word)| word));
        members.set("maximum_downloads", self.maximum_downloads.map(|Whole(maximum)| maximum));
        let body = client.call(&Request::post(path).json(&members.0.into()))?;
        if !body["url"].is_string() {
            return Err("the response contains no URL".into());
        }
        client.print(&body, || format!("{}\n\n{}", word(&body["url"]), SHARES.text(&body["share"])))
    }
}

impl List {
    fn run(&self) -> Outcome {
        let selection = Selection {
            place: self.place.as_ref(),
            status: self.status.map(|ShareStatus(word)| word),
            created_by: self.created_by.as_deref(),
            limit: self.limit,
        };
        SHARES.list(&self.client()?, &selection)
    }
}

impl Show {
    fn run(&self) -> Outcome {
        SHARES.show(&self.client()?, &self.share)
    }
}

impl Update {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let mut members = Members::new();
        let options = PasswordOptions {
            given: self.password.as_deref(),
            is_on_stdin: self.password_stdin,
            is_asked: self.ask_password,
        };
        if self.no_password && (self.password.is_some() || self.password_stdin || self.ask_password) {
            let message = "the password cannot be set and removed at the same time";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        members.set("password", options.read()?);
        members.remove("password", self.no_password)?;
        members.expire(&client, self.expires.as_ref())?;
        members.remove("expires_at", self.no_expiry)?;
        members.set("label", self.label.clone());
        members.remove("label", self.no_label)?;
        members.set("maximum_downloads", self.maximum_downloads.map(|Whole(maximum)| maximum));
        members.remove("maximum_downloads", self.no_maximum_downloads)?;
        SHARES.update(&client, &self.share, &members.changes()?)
    }
}

impl Url {
    fn run(&self) -> Outcome {
        SHARES.url(&self.client()?, &self.share)
    }
}

impl Revoke {
    fn run(&self) -> Outcome {
        SHARES.revoke(&self.client()?, &self.share)
    }
}

impl Delete {
    fn run(&self) -> Outcome {
        SHARES.delete(&self.client()?, &self.share)
    }
}
