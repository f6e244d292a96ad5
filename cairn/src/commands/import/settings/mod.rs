//! `cairn import settings`: the settings of buckets of MinIO.
//!
//! Buckets that are missing are created. What a bucket has here already is never weakened or replaced, so that the command can
//! be repeated. Public access and webhooks are proposed, and made only if they are accepted.

mod lifecycle;
mod make;
mod notification;
mod proposal;
mod public;
mod wanted;

use serde_json::json;

use super::archive;
use super::changes::Changes;
use super::loss::{Loss, end, losses_text};
use crate::commands::macros::command;
use crate::failure::{Failure, Outcome};
use crate::quantity::counted;
use crate::terminal::plain;
use make::{BucketLine, Made};
use proposal::{Address, Proposal};
use wanted::Wanted;

command! {
    /// Take over the settings of the buckets of a MinIO server, and create buckets that are missing. Exits with 1 if something
    /// was not taken over; it is listed.
    #[argh(note = "The archive is what `mc admin cluster bucket export` writes. Versioning, object lock, quotas, CORS rules and
lifecycle rules are set. Anonymous reads and notifications are listed as proposals, and made with --accept.
The command can be repeated: what a bucket has here already stays as it is.")]
    struct Settings("settings") {
        /// the archive
        #[argh(positional)]
        zip: String,
        /// show what would be done, and change nothing
        #[argh(switch)]
        dry_run: bool,
        /// also make the proposals: public access as at the source, and webhooks
        #[argh(switch)]
        accept: bool,
        /// the URL of a notification target, because the archive does not contain it; may be repeated
        #[argh(option, arg_name = "target=url")]
        webhook: Vec<Address>,
    }
}

/// Returns what of an export of buckets cannot be taken over, for the plan of a move.
///
/// # Errors
/// The archive cannot be read.
pub(super) fn losses_of_settings(zip: &str) -> Result<Vec<Loss>, Failure> {
    Ok(Wanted::read(&archive::read(zip)?)?.losses)
}

impl Settings {
    pub(super) fn run(&self) -> Outcome {
        let wanted = Wanted::read(&archive::read(&self.zip)?)?;
        let client = self.client()?;
        let changes = Changes { client: &client, is_dry: self.dry_run, losses: wanted.losses };
        let mut made = Made { changes, accept: self.accept, addresses: &self.webhook };
        let (buckets, proposals) = made.all(&wanted.buckets)?;
        let losses = made.changes.losses;
        let pending = proposals.iter().filter(|proposal| proposal.is_pending()).count();
        let body = json!({
            "dry_run": self.dry_run,
            "complete": losses.is_empty() && pending == 0,
            "buckets": buckets,
            "proposals": proposals,
            "losses": losses,
        });
        client.print(&body, || text(self.dry_run, &buckets, &proposals, &losses))?;
        if losses.is_empty() && pending > 0 {
            let proposals = counted(pending as u64, "proposal");
            return Err(format!("{proposals} not made; --accept makes what is proposed").into());
        }
        end(&losses)
    }
}

fn text(is_dry_run: bool, buckets: &[BucketLine<'_>], proposals: &[Proposal], losses: &[Loss]) -> String {
    let mut lines = vec![format!("{} in the archive", counted(buckets.len() as u64, "bucket"))];
    for BucketLine { name, changes, .. } in buckets {
        let changes = match &changes[..] {
            [] => "unchanged".to_owned(),
            changes if is_dry_run => format!("would be changed: {}", changes.join(", ")),
            changes => changes.join(", "),
        };
        lines.push(format!("  bucket {name}: {changes}"));
    }
    if !proposals.is_empty() {
        lines.push("proposals:".to_owned());
    }
    lines.extend(proposals.iter().map(|proposal| format!("  {}", proposal.text(is_dry_run))));
    let lines: String = lines.iter().map(|line| plain(line) + "\n").collect();
    lines + &losses_text(losses)
}
