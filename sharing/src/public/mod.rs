//! Public capability delivery: the requests of visitors, whose only authorization is the token in the path.
//!
//! `/s/{token}…` is served on the management plane and on the console's listener, `/e/{token}` on the data plane.
//! A token that is sent to the wrong one of them is refused and never recorded.
//! Source: specification, "Public capability delivery".

mod embed;
mod links;
mod misplaced;
mod negotiation;
mod page;
mod read_audit;
mod refusal;
mod reply;
mod service;
mod share;

pub use links::PublicLinks;
pub use service::ShareService;
