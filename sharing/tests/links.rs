//! Links: creation, change, revocation, deletion, lists, policy, durability.

use crate::support::{DAY, Fixture, NOW, embed, new_embed, new_link, new_share, object, share};
use cairn_model::{BucketName, Timestamp};
use cairn_sharing::{
    Author, Disposition, Embed, EmbedChange, LINKS_PER_OBJECT_MAX, LinkError, LinkId, LinkKind, LinkObject,
    LinkPolicy, LinkQuery, LinkStatus, Links, NewLink, NewShare, Share, ShareChange, WebOrigin,
};
use futures_lite::future::block_on;

fn page(sharing: &Links, change: impl FnOnce(&mut LinkQuery)) -> Vec<LinkId> {
    let mut query = LinkQuery {
        bucket_id: None,
        status: None,
        created_by: None,
        author: None,
        before: None,
        limit: 1000,
    };
    change(&mut query);
    let page = block_on(sharing.page::<Share>(query)).unwrap();
    page.links.iter().map(|share| share.link.id).collect()
}

fn status(sharing: &Links, share: &Share) -> LinkStatus {
    sharing.get::<Share>(share.link.id).unwrap().unwrap().status_at(sharing.now())
}

#[test]
fn links_are_found_by_their_token_and_survive_a_restart() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (first, token) = share(&sharing, new_share("a"));
    let (second, embed_token) = embed(&sharing, "b");
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(first.clone())));
    assert_eq!(sharing.find::<Embed>(&embed_token.hash()), Ok(Some(second.clone())));
    assert_eq!(sharing.find::<Embed>(&token.hash()), Ok(None), "the token of a share finds no embed");
    assert_eq!(sharing.find::<Share>(&embed_token.hash()), Ok(None));
    assert_eq!(
        sharing.url(LinkKind::Share, &token, None),
        format!("http://127.0.0.1:7602/s/{}", token.expose())
    );
    drop(sharing);

    let sharing = fixture.open();
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(first.clone())));
    assert_eq!(sharing.token::<Share>(first.link.id), Ok(Some(token)));
    assert_eq!(sharing.token::<Embed>(second.link.id), Ok(Some(embed_token)));
    assert_eq!(sharing.token::<Embed>(first.link.id), Ok(None));
    assert_eq!(sharing.metrics().links, [1, 1]);
    assert_eq!(block_on(sharing.inspect()), Ok((8, Vec::new())));
}

#[test]
fn tokens_are_not_on_disk() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (_, token) =
        share(&sharing, NewShare { password: Some("hidden words".to_owned().into()), ..new_share("a") });
    drop(sharing);
    let data = std::fs::read(fixture.data()).unwrap();
    let contains = |text: &str| data.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(contains("photos") && !contains(token.expose()) && !contains("hidden words"));
}

#[test]
fn revocation_is_in_force_at_once_and_permanent() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (created, token) = share(&sharing, new_share("a"));
    let (revoked, changed) = block_on(sharing.revoke::<Share>(created.link.id)).unwrap();
    assert!(changed && revoked.status_at(sharing.now()) == LinkStatus::Revoked);
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(revoked)));
    assert!(!block_on(sharing.revoke::<Share>(created.link.id)).unwrap().1, "a second time changes nothing");
    let change = ShareChange { expires_at: Some(Some(Timestamp(NOW + DAY))), ..ShareChange::default() };
    let changed = block_on(sharing.update_share(created.link.id, change)).unwrap();
    assert_eq!(changed.status_at(sharing.now()), LinkStatus::Revoked);
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!(status(&sharing, &created), LinkStatus::Revoked);

    let (created, token) = embed(&sharing, "a");
    assert!(block_on(sharing.revoke::<Embed>(created.link.id)).unwrap().1);
    let found = sharing.find::<Embed>(&token.hash()).unwrap().unwrap();
    assert_eq!(found.status_at(sharing.now()), LinkStatus::Revoked);
}

fn member(subject: &str) -> Author {
    Author {
        issuer: "https://p.example".to_owned(),
        subject: subject.to_owned(),
        policies: vec!["reads".to_owned()],
    }
}

#[test]
fn the_author_of_a_share_stays() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let new = NewShare { author: Some(member("5")), ..new_share("a") };
    let (created, token) = share(&sharing, new);
    assert!(created.author.as_ref().is_some_and(|author| author.is_same_person(&member("5"))));
    assert!(created.author.as_ref().is_some_and(|author| !author.is_same_person(&member("6"))));
    let change = ShareChange { label: Some("for Ada".to_owned()), ..ShareChange::default() };
    let changed = block_on(sharing.update_share(created.link.id, change)).unwrap();
    assert_eq!((&changed.author, &*changed.link.label), (&created.author, "for Ada"));
    drop(sharing);
    let sharing = fixture.open();
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(Some(changed)));
    assert_eq!(block_on(sharing.inspect()), Ok((4, Vec::new())));
}

#[test]
fn members_leave_room_for_the_shares_of_others() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let create = |author| block_on(sharing.create_share(NewShare { author, ..new_share("a") }));
    let created = (0..LINKS_PER_OBJECT_MAX).take_while(|_| create(Some(member("5"))).is_ok()).count();
    assert_eq!(created, LINKS_PER_OBJECT_MAX / 10 * 9);
    let refused = create(Some(member("6"))).map(drop).unwrap_err();
    assert!(matches!(refused, LinkError::TooMany { max, .. } if max == created as u64), "{refused}");
    assert!(create(None).is_ok());
}

#[test]
fn deleted_links_leave_nothing() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (created, token) = share(&sharing, new_share("a"));
    let (other, _) = share(&sharing, new_share("a"));
    assert_eq!(block_on(sharing.delete::<Share>(created.link.id)).unwrap().link.id, created.link.id);
    assert_eq!(sharing.find::<Share>(&token.hash()), Ok(None));
    assert_eq!(sharing.get::<Share>(created.link.id), Ok(None));
    assert_eq!(page(&sharing, |_| ()), [other.link.id]);
    assert_eq!(block_on(sharing.of_object::<Share>(object("a"))).unwrap(), [other]);
    assert_eq!(block_on(sharing.inspect()).unwrap().0, 4, "four records of the other one");
    let missing = LinkError::NotFound(LinkKind::Share);
    assert_eq!(block_on(sharing.delete::<Share>(created.link.id)).unwrap_err(), missing);
    assert_eq!(block_on(sharing.revoke::<Share>(created.link.id)).unwrap_err(), missing);
    let change = ShareChange { password: Some(Some("p".to_owned().into())), ..ShareChange::default() };
    assert_eq!(block_on(sharing.update_share(created.link.id, change)).unwrap_err(), missing);
}

#[test]
fn links_expire_and_a_clock_that_is_set_back_does_not_revive_them() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let link = NewLink { expires_at: Some(Timestamp(NOW + DAY)), ..new_link("a") };
    let (created, _) = share(&sharing, NewShare { link, ..new_share("a") });
    fixture.set_time(NOW + DAY - 1);
    assert_eq!(status(&sharing, &created), LinkStatus::Active);
    fixture.set_time(NOW + 2 * DAY);
    assert_eq!(status(&sharing, &created), LinkStatus::Expired);
    fixture.set_time(NOW);
    assert_eq!(status(&sharing, &created), LinkStatus::Expired);
}

#[test]
fn changes_replace_and_remove_values() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let (created, _) = share(&sharing, new_share("a"));
    let change = ShareChange {
        label: Some("for Anna".to_owned()),
        expires_at: Some(Some(Timestamp(NOW + DAY))),
        password: Some(Some("secret".to_owned().into())),
        maximum_downloads: Some(Some(3)),
    };
    let changed = block_on(sharing.update_share(created.link.id, change)).unwrap();
    assert_eq!((changed.link.label.as_str(), changed.maximum_downloads), ("for Anna", Some(3)));
    assert!(changed.is_password_protected() && changed.link.expires_at == Some(Timestamp(NOW + DAY)));
    let same = block_on(sharing.update_share(created.link.id, ShareChange::default())).unwrap();
    assert_eq!(same, changed);
    let removal = ShareChange {
        label: Some(String::new()),
        expires_at: Some(None),
        password: Some(None),
        maximum_downloads: Some(None),
    };
    assert_eq!(block_on(sharing.update_share(created.link.id, removal)).unwrap(), created);

    let (created, _) = embed(&sharing, "a");
    let origin = WebOrigin::parse("https://b.example").unwrap();
    let change = EmbedChange {
        allowed_origins: Some(vec![origin.clone(), origin.clone()]),
        disposition: Some(Disposition::Attachment),
        ..EmbedChange::default()
    };
    let changed = block_on(sharing.update_embed(created.link.id, change)).unwrap();
    assert_eq!((changed.allowed_origins, changed.disposition), (vec![origin], Disposition::Attachment));
    assert_eq!(block_on(sharing.inspect()).unwrap().1, []);
}

#[test]
fn invalid_values_are_refused_and_change_nothing() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let refused = |new| matches!(block_on(sharing.create_share(new)), Err(LinkError::Invalid(_)));
    let labelled = |label: &str| NewLink { label: label.to_owned(), ..new_link("a") };
    for new in [
        NewShare { maximum_downloads: Some(0), ..new_share("a") },
        NewShare { password: Some(String::new().into()), ..new_share("a") },
        NewShare { password: Some("p".repeat(1025).into()), ..new_share("a") },
        NewShare { link: labelled(&"l".repeat(257)), ..new_share("a") },
        NewShare { link: labelled("a\nb"), ..new_share("a") },
        NewShare { link: NewLink { expires_at: Some(Timestamp(NOW)), ..new_link("a") }, ..new_share("a") },
    ] {
        assert!(refused(new));
    }
    let embed = |origins: &[&str]| block_on(sharing.create_embed(new_embed("a", origins))).map(drop);
    assert!(matches!(embed(&[]), Err(LinkError::Invalid(_))));
    let many: Vec<String> = (0..101).map(|number| format!("https://{number}.example")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(embed(&many), Err(LinkError::Invalid(_))));
    assert_eq!(embed(&many[1..]), Ok(()));
    assert_eq!(sharing.metrics().links, [0, 1]);
}

#[test]
fn policy_applies_to_new_links_and_changes_of_expiry_only() {
    let mut fixture = Fixture::new();
    let sharing = fixture.open();
    let (old, _) = share(&sharing, new_share("a"));
    let (old_embed, _) = embed(&sharing, "a");
    drop(sharing);
    fixture.policy = LinkPolicy {
        embeds_enabled: false,
        maximum_lifetime_days: Some(7),
        require_expiration: true,
        ..LinkPolicy::default()
    };
    let sharing = fixture.open();
    assert_eq!(status(&sharing, &old), LinkStatus::Active, "it keeps its own lifetime");
    assert_eq!(block_on(sharing.create_share(new_share("a"))).unwrap_err(), LinkError::ExpirationRequired);
    let link = |days| NewLink { expires_at: Some(Timestamp(NOW + days * DAY)), ..new_link("a") };
    let create =
        |days| block_on(sharing.create_share(NewShare { link: link(days), ..new_share("a") })).map(drop);
    assert_eq!(create(8), Err(LinkError::LifetimeTooLong { days: 7 }));
    assert_eq!(create(7), Ok(()));
    let refused = block_on(sharing.create_embed(new_embed("a", &["https://a.example"]))).unwrap_err();
    assert_eq!(refused, LinkError::EmbedsDisabled);
    let label = || ShareChange { label: Some("l".to_owned()), ..ShareChange::default() };
    assert!(block_on(sharing.update_share(old.link.id, label())).is_ok());
    let forever = ShareChange { expires_at: Some(None), ..ShareChange::default() };
    assert_eq!(
        block_on(sharing.update_share(old.link.id, forever)).unwrap_err(),
        LinkError::ExpirationRequired
    );
    assert!(
        block_on(sharing.revoke::<Embed>(old_embed.link.id)).is_ok(),
        "embeds can be revoked while they are off"
    );
}

#[test]
fn lists_have_the_newest_first_and_pages_have_no_gap() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    let mut ids = Vec::new();
    for number in 0..25u64 {
        fixture.set_time(NOW + number);
        let mut new = new_share("a");
        new.link.object.bucket_id = number % 2;
        new.link.object.bucket = BucketName::parse(if number % 2 == 0 { "even" } else { "odd" }).unwrap();
        new.link.created_by = if number < 5 { "anna" } else { "root" }.to_owned();
        ids.insert(0, share(&sharing, new).0.link.id);
    }
    block_on(sharing.revoke::<Share>(ids[3])).unwrap();
    assert_eq!(page(&sharing, |_| ()), ids);
    let odd: Vec<_> = ids.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(page(&sharing, |query| query.bucket_id = Some(1)), odd);
    assert_eq!(page(&sharing, |query| query.bucket_id = Some(9)), []);
    assert_eq!(page(&sharing, |query| query.status = Some(LinkStatus::Revoked)), ids[3..4]);
    assert_eq!(page(&sharing, |query| query.created_by = Some("anna".to_owned())), ids[20..]);
    let (mut before, mut read) = (None, Vec::new());
    loop {
        let query =
            LinkQuery { bucket_id: Some(1), status: None, created_by: None, author: None, before, limit: 5 };
        let page = block_on(sharing.page::<Share>(query)).unwrap();
        read.extend(page.links.iter().map(|share| share.link.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(read, odd);
}

#[test]
fn an_object_has_a_limited_number_of_links() {
    let fixture = Fixture::new();
    let sharing = fixture.open();
    for _ in 0..LINKS_PER_OBJECT_MAX {
        share(&sharing, new_share("a"));
    }
    let refused = block_on(sharing.create_share(new_share("a"))).unwrap_err();
    assert_eq!(refused, LinkError::TooMany { what: "shares of an object", max: 1000 });
    share(&sharing, new_share("b"));
    embed(&sharing, "a");
    assert_eq!(block_on(sharing.of_object::<Share>(object("a"))).unwrap().len(), LINKS_PER_OBJECT_MAX);
    let of_other_bucket = LinkObject { bucket_id: 4, ..object("a") };
    assert_eq!(block_on(sharing.of_object::<Share>(of_other_bucket)).unwrap(), []);
}
