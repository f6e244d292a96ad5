//! `cairn share`: URLs for people, with an optional password, expiry and limit of downloads.

use cairn_api::{CreateShare, NewShare, UpdateShare};

use super::list::{LIMIT_DEFAULT, Selection, path_of_object};
use super::members::{LinkDisposition, expiry, removable, update};
use super::password::PasswordOptions;
use crate::choice::choice;
use crate::client::{Request, changed};
use crate::commands::macros::{command, noun, verbs};
use crate::commands::object::place::Place;
use crate::commands::resources::SHARES;
use crate::failure::{Failure, Outcome};
use crate::moment::Deadline;
use crate::quantity::{ListLimit, Whole};
use crate::terminal::plain;

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
    /// Change a share. What is not given does not change. A new password ends the access of visitors who gave the previous one.
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
        /// remove the password
        #[argh(switch)]
        no_password: bool,
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
        /// downloads after which it stops working, counted from its creation
        #[argh(option, arg_name = "n")]
        maximum_downloads: Option<Downloads>,
        /// remove the limit of downloads
        #[argh(switch)]
        no_maximum_downloads: bool,
    }
}

/// A number of downloads. JSON numbers are exact up to here.
type Downloads = Whole<1, { cairn_api::MAXIMUM_DOWNLOADS_MAX }>;

verbs! {
    SHARES by {
        /// the share's id
        share
    }
    /// Show a share, without its URL.
    show,
    /// Print the URL of a share. This is recorded in the audit trail.
    url,
    /// Revoke a share, permanently. The next request of a visitor is refused.
    revoke,
    /// Delete a share with its counts. Its URL is then unknown.
    delete,
}

choice! {
    /// States of shares.
    ShareStatus = "active" | "revoked" | "expired" | "exhausted"
}

impl Create {
    fn run(&self) -> Outcome {
        let path = path_of_object(&SHARES, &self.place)?;
        let client = self.client()?;
        let expires_at = expiry(&client, self.expires.as_ref())?;
        let options = PasswordOptions {
            given: self.password.as_deref(),
            is_on_stdin: self.password_stdin,
            is_asked: self.ask_password,
        };
        let request = CreateShare {
            label: self.label.clone().map(Into::into),
            password: options.read()?.map(Into::into),
            expires_at,
            version_id: self.version_id.clone().map(Into::into),
            disposition: self.disposition.map(LinkDisposition::body),
            maximum_downloads: self.maximum_downloads.map(|Whole(maximum)| maximum),
        };
        let body = client.call(&Request::post(path).json(&request))?;
        client.print_as(&body, |new: &NewShare| format!("{}\n\n{}", plain(&new.url), SHARES.text(&new.share)))
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
        selection.print(&SHARES, &self.client()?)
    }
}

impl Update {
    fn run(&self) -> Outcome {
        let client = self.client()?;
        let options = PasswordOptions {
            given: self.password.as_deref(),
            is_on_stdin: self.password_stdin,
            is_asked: self.ask_password,
        };
        if self.no_password && (self.password.is_some() || self.password_stdin || self.ask_password) {
            let message = "the password cannot be set and removed at the same time";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let password = changed(options.read()?.map(Into::into), self.no_password);
        let expires_at = removable("expires at", expiry(&client, self.expires.as_ref())?, self.no_expiry)?;
        let label = removable("label", self.label.clone().map(Into::into), self.no_label)?;
        let maximum = self.maximum_downloads.map(|Whole(maximum)| maximum);
        let maximum_downloads = removable("maximum downloads", maximum, self.no_maximum_downloads)?;
        let changes = UpdateShare { label, expires_at, password, maximum_downloads };
        update(&SHARES, &client, &self.share, &changes)
    }
}
