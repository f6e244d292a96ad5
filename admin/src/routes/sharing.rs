//! Routes of shares and embeds.

use cairn_api::*;
use cairn_identity::policy::Action;

use super::Route;
use super::row::*;
use crate::handlers::links;
use crate::operation::{MemberAccess, QueryParameter};

/// Returns the parameters of a list of links, whose states have the type `S`.
const fn list_parameters<S: JsonSchema>() -> [QueryParameter; 5] {
    [
        optional::<BucketName>("bucket"),
        optional::<S>("status"),
        optional::<String>("created_by"),
        optional::<PageLimit>("limit"),
        optional::<String>("continuation_token"),
    ]
}

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/buckets/{bucket}/object-shares/{key}", ALL, "list_object_shares")
        .summary("Lists the shares of an object, the newest first.")
        .answers(&[ok::<ShareList>()], &[BUCKET_NAME, BUCKET, OBJECT])
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(links::list_of_object::<cairn_sharing::Share>)),
    // The policies are asked again at each use of the share.
    post("/api/v1/buckets/{bucket}/object-shares/{key}", STORAGE, "create_share")
        .summary(
            "Creates a share: a URL for people, optionally with a password, an expiry and a limit \
             of downloads.",
        )
        .body(optional_json::<CreateShare>())
        .answers(
            &[created::<NewShare>()],
            &[BUCKET_NAME, BUCKET, OBJECT, VERSION, EXPIRATION, LIFETIME, LIMIT],
        )
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(links::shares::create)),
    // The handlers leave out the shares of others.
    get("/api/v1/shares", ALL, "list_shares")
        .summary(
            "Lists the shares of all objects, the newest first. A page may have fewer entries \
             although more follow.",
        )
        .query(&list_parameters::<ShareStatus>())
        .answers(&[ok::<SharePage>()], &[BUCKET_NAME, BUCKET])
        .open_to_members(MemberAccess::OwnShares)
        .handler(boxed!(links::list::<cairn_sharing::Share>)),
    get("/api/v1/shares/{id}", ALL, "get_share")
        .summary("Shows one share, without its URL.")
        .answers(&[ok::<Share>()], &[SHARE])
        .open_to_members(MemberAccess::OwnShare)
        .handler(boxed!(links::get::<cairn_sharing::Share>)),
    patch("/api/v1/shares/{id}", STORAGE, "update_share")
        .summary(
            "Changes label, expiry, password or limit of downloads of a share. Null removes a \
             value.",
        )
        .body(json::<UpdateShare>())
        .answers(&[ok::<Share>()], &[SHARE, EXPIRATION, LIFETIME])
        .open_to_members(MemberAccess::OwnShareOf(Action::GetObject))
        .handler(boxed!(links::shares::update)),
    delete("/api/v1/shares/{id}", STORAGE, "delete_share")
        .summary("Deletes a share with its counts.")
        .answers(&[DONE], &[SHARE])
        .open_to_members(MemberAccess::OwnShare)
        .handler(boxed!(links::delete::<cairn_sharing::Share>)),
    // A share asks the policies that its author had when it was created, which may be others than those of now.
    get("/api/v1/shares/{id}/url", STORAGE, "get_share_url")
        .summary("Returns the URL of a share, which is all that a visitor needs. Each call is audited.")
        .answers(&[ok::<LinkUrl>()], &[SHARE])
        .access()
        .open_to_members(MemberAccess::OwnShareOf(Action::GetObject))
        .handler(boxed!(links::url::<cairn_sharing::Share>)),
    post("/api/v1/shares/{id}/revoke", STORAGE, "revoke_share")
        .summary("Revokes a share, permanently.")
        .body(optional_json::<Nothing>())
        .answers(&[ok::<Share>()], &[SHARE])
        .open_to_members(MemberAccess::OwnShare)
        .handler(boxed!(links::revoke::<cairn_sharing::Share>)),
    get("/api/v1/buckets/{bucket}/object-embeds/{key}", ALL, "list_object_embeds")
        .summary("Lists the embeds of an object, the newest first.")
        .answers(&[ok::<EmbedList>()], &[BUCKET_NAME, BUCKET, OBJECT])
        .handler(boxed!(links::list_of_object::<cairn_sharing::Embed>)),
    post("/api/v1/buckets/{bucket}/object-embeds/{key}", STORAGE, "create_embed")
        .summary("Creates an embed: a URL that pages of the allowed origins can show.")
        .body(json::<CreateEmbed>())
        .answers(
            &[created::<NewEmbed>()],
            &[
                BUCKET_NAME,
                BUCKET,
                OBJECT,
                VERSION,
                EXPIRATION,
                LIFETIME,
                ORIGIN,
                EMBED_TYPE,
                (403, "SHARING_DISABLED"),
                LIMIT,
            ],
        )
        .handler(boxed!(links::embeds::create)),
    get("/api/v1/embeds", ALL, "list_embeds")
        .summary(
            "Lists the embeds of all objects, the newest first. A page may have fewer entries \
             although more follow.",
        )
        .query(&list_parameters::<EmbedStatus>())
        .answers(&[ok::<EmbedPage>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(links::list::<cairn_sharing::Embed>)),
    get("/api/v1/embeds/{id}", ALL, "get_embed")
        .summary("Shows one embed, without its URL.")
        .answers(&[ok::<Embed>()], &[EMBED])
        .handler(boxed!(links::get::<cairn_sharing::Embed>)),
    patch("/api/v1/embeds/{id}", STORAGE, "update_embed")
        .summary(
            "Changes label, origins, expiry or disposition of an embed. Null removes label and \
             expiry.",
        )
        .body(json::<UpdateEmbed>())
        .answers(&[ok::<Embed>()], &[EMBED, OBJECT, VERSION, EXPIRATION, LIFETIME, ORIGIN, EMBED_TYPE])
        .handler(boxed!(links::embeds::update)),
    delete("/api/v1/embeds/{id}", STORAGE, "delete_embed")
        .summary("Deletes an embed with its counts.")
        .answers(&[DONE], &[EMBED])
        .handler(boxed!(links::delete::<cairn_sharing::Embed>)),
    get("/api/v1/embeds/{id}/url", STORAGE, "get_embed_url")
        .summary("Returns the URL of an embed. Each call is audited.")
        .answers(&[ok::<LinkUrl>()], &[EMBED])
        .access()
        .handler(boxed!(links::url::<cairn_sharing::Embed>)),
    post("/api/v1/embeds/{id}/revoke", STORAGE, "revoke_embed")
        .summary("Revokes an embed, permanently.")
        .body(optional_json::<Nothing>())
        .answers(&[ok::<Embed>()], &[EMBED])
        .handler(boxed!(links::revoke::<cairn_sharing::Embed>)),
    get("/api/v1/sharing/settings", ALL, "get_sharing_settings")
        .summary("Shows the deployment-wide policy of sharing.")
        .answers(&[ok::<SharingSettings>()], &[])
        .handler(boxed!(links::settings)),
];
