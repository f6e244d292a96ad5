//! Tests of the sessions.

use super::*;
use crate::access::AuthenticationKind;
use crate::limits::USER_AGENT_BYTES_MAX;
use cairn_http1::{HeadLimits, parse_head};
use cairn_identity::Standing;

const NOW: Timestamp = Timestamp(1_000_000);

fn sessions(is_secure: bool, idle: u64) -> Sessions {
    let (store_id, idle) = ("0123456789abcdef".to_owned(), Duration::from_secs(idle));
    let (secure_hosts, absolute) = (vec!["console.example".to_owned()], Duration::from_secs(3600));
    Sessions::new(SessionOptions { store_id, is_secure, secure_hosts, idle, absolute })
}

fn caller() -> Caller {
    Caller {
        standing: Standing::Role(Role::Auditor),
        principal: "root".to_owned(),
        token: None,
        subject: None,
        authentication: AuthenticationKind::Token,
    }
}

fn head(fields: &str) -> RequestHead {
    let text = format!("POST / HTTP/1.1\r\nHost: console:7602\r\n{fields}\r\n");
    parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole").0
}

fn source() -> SessionSource {
    SessionSource {
        address: IpAddr::from([192, 0, 2, 1]),
        user_agent: "browser".to_owned(),
        at_provider: None,
    }
}

fn begin(sessions: &Sessions) -> RequestHead {
    begin_as(sessions, caller())
}

fn begin_as(sessions: &Sessions, caller: Caller) -> RequestHead {
    begin_at(sessions, caller, source())
}

fn begin_at(sessions: &Sessions, caller: Caller, source: SessionSource) -> RequestHead {
    let begun = sessions.begin(caller, &head(""), source, None, NOW).expect("random bytes");
    head(&format!("Cookie: a=b; {}\r\n", begun.cookie.split(';').next().expect("a pair")))
}

#[test]
fn a_session_is_found_by_its_cookie_until_it_ends() {
    let sessions = sessions(false, 60);
    let request = begin(&sessions);
    assert_eq!(sessions.find(&request, None).expect("found").caller, caller());
    assert!(sessions.is_active(&request, None));
    let other = begin(&sessions);
    let removal = sessions.end(&request);
    assert!(
        removal[0].contains("=; Path=/; Max-Age=0")
            && removal.len() == 1
            && sessions.find(&request, None).is_none()
    );
    assert!(!sessions.is_active(&request, None) && sessions.is_active(&other, None));
    assert!(sessions.find(&other, None).is_some(), "only one session has ended");
    assert!(sessions.find(&head(""), None).is_none());
    let cookie = other.header_str("cookie").expect("a cookie");
    let twice = head(&format!("Cookie: {cookie}; {}\r\n", cookie.split("; ").nth(1).expect("a pair")));
    assert!(sessions.find(&twice, None).is_none(), "two cookies of one name");
}

/// Regression: the session that a browser had before a login stayed, and nobody had its cookie to end it.
#[test]
fn a_login_ends_the_session_that_the_browser_had() {
    let sessions = sessions(false, 60);
    let [earlier, other, strict] = [(); 3].map(|()| begin(&sessions));
    sessions.begin(caller(), &earlier, source(), None, NOW).expect("random bytes");
    assert!(!sessions.is_active(&earlier, None) && sessions.is_active(&other, None));
    // The browser does not send its cookie when it comes back from the provider.
    let known = sessions.id_of(&strict).expect("a session");
    assert_eq!(sessions.id_of(&head("")), None);
    sessions.end_earlier(&known);
    assert!(!sessions.is_active(&strict, None) && sessions.is_active(&other, None));
}

#[test]
fn unused_sessions_end_and_their_number_is_limited() {
    let unused = sessions(false, 0);
    let request = begin(&unused);
    assert!(!unused.is_active(&request, None) && unused.find(&request, None).is_none());
    let sessions = sessions(false, 60);
    let [first, second] = [begin(&sessions), begin(&sessions)];
    for _ in 0..SESSIONS_OF_CREDENTIAL_MAX - 1 {
        begin(&sessions);
    }
    assert!(sessions.find(&first, None).is_none(), "the one that was not used for the longest time");
    assert!(sessions.find(&second, None).is_some());
    assert_eq!(sessions.0.table.lock().len(), SESSIONS_OF_CREDENTIAL_MAX);
}

/// Regression: 1001 logins of an auditor ended the sessions of everybody else.
#[test]
fn logins_of_one_credential_end_no_session_of_another() {
    let sessions = sessions(false, 60);
    let named = |name: String| Caller { principal: name, ..caller() };
    let quiet = begin_as(&sessions, named("token:quiet".to_owned()));
    for credential in 0..=SESSIONS_MAX / SESSIONS_OF_CREDENTIAL_MAX {
        for _ in 0..2 * SESSIONS_OF_CREDENTIAL_MAX {
            begin_as(&sessions, named(format!("token:{credential}")));
        }
    }
    assert!(sessions.find(&quiet, None).is_some());
    assert_eq!(sessions.0.table.lock().len(), SESSIONS_MAX);
}

#[test]
fn callers_see_and_end_their_own_sessions_and_administrators_all() {
    let sessions = sessions(false, 60);
    let named =
        |name: &str, role| Caller { principal: name.to_owned(), standing: Standing::Role(role), ..caller() };
    let (auditor, other) = (named("token:a", Role::Auditor), named("token:b", Role::StorageAdmin));
    let admin = named("system", Role::SystemAdmin);
    let [of_auditor, of_other, of_admin] =
        [&auditor, &other, &admin].map(|caller| begin_as(&sessions, caller.clone()));
    let list = |caller, head| sessions.list(caller, head, None);
    let [seen] = &list(&auditor, &of_auditor)[..] else { panic!("only its own") };
    assert_eq!((seen.is_current, seen.created_at, &*seen.user_agent), (true, NOW, "browser"));
    let all = list(&admin, &of_admin);
    assert_eq!(all.len(), 3);
    assert!(all[0].is_current && all[1..].iter().all(|session| !session.is_current));
    let id_of_other = list(&other, &of_other)[0].id;
    assert_eq!(sessions.end_by_id(&auditor, &of_auditor, id_of_other), None);
    assert!(sessions.find(&of_other, None).is_some());
    assert!(sessions.end_by_id(&admin, &of_admin, id_of_other).is_some());
    assert!(sessions.find(&of_other, None).is_none());
    assert_eq!(sessions.end_by_id(&admin, &of_admin, id_of_other), None, "it has ended");
    assert!(sessions.end_by_id(&auditor, &of_auditor, seen.id).is_some_and(|ended| ended.is_current));
}

/// Two sessions of one person at the provider, one of which it has not named, and one of another person.
#[test]
fn a_provider_ends_what_it_names() {
    let text = |text: Option<&str>| text.map(str::to_owned);
    for (subject, session, left) in [
        (Some("1"), Some("a"), &["b", "other"][..]),
        (Some("1"), None, &["other"]),
        (None, Some("b"), &["a", "unnamed", "other"]),
        (Some("2"), Some("a"), &["a", "b", "unnamed", "other"]),
        (Some("3"), None, &["a", "b", "unnamed", "other"]),
    ] {
        let sessions = sessions(false, 60);
        let mut begun = Vec::new();
        for (name, own, at_provider) in
            [("a", "1", Some("a")), ("b", "1", Some("b")), ("unnamed", "1", None), ("other", "2", Some("c"))]
        {
            let person = Caller { subject: Some(own.into()), ..caller() };
            let source = source().at_provider(text(at_provider));
            begun.push((name, begin_at(&sessions, person, source)));
        }
        // That of a token stays in any case.
        let of_token = begin(&sessions);
        let logout = Logout { subject: text(subject), session: text(session), id: String::new() };
        let ended = sessions.end_of_provider(&logout);
        let is_there = |request: &RequestHead| sessions.find(request, None).is_some();
        let found: Vec<_> =
            begun.iter().filter(|(_, request)| is_there(request)).map(|(name, _)| *name).collect();
        assert_eq!((found.as_slice(), ended), (left, 4 - left.len()), "{subject:?} {session:?}");
        assert!(is_there(&of_token));
    }
}

/// People have equal names, and a person can be called like a token.
#[test]
fn signing_out_everywhere_ends_the_sessions_of_one_person() {
    let sessions = sessions(false, 60);
    let person = |name: &str, subject: &str| Caller {
        principal: name.to_owned(),
        subject: Some(subject.into()),
        ..caller()
    };
    let own = person("person:ada", "1");
    let others = [person("person:ada", "2"), person("root", "3"), caller()];
    let of_own = [own.clone(), person("person:renamed", "1")].map(|caller| begin_as(&sessions, caller));
    let of_others = others.map(|caller| begin_as(&sessions, caller));
    assert_eq!(sessions.end_all_of(&own), 2);
    assert!(of_own.iter().all(|head| sessions.find(head, None).is_none()));
    assert!(of_others.iter().all(|head| sessions.find(head, None).is_some()));
}

#[test]
fn public_ids_are_not_the_cookies() {
    let sessions = sessions(false, 60);
    let request = begin(&sessions);
    let cookie = request.header_str("cookie").expect("a cookie");
    let [session] = &sessions.list(&caller(), &request, None)[..] else { panic!("one") };
    let text = session.id.to_string();
    assert_eq!(SessionId::parse(&text), Some(session.id));
    let hashed = sessions.id_of(&request).expect("a cookie");
    assert!(!cookie.contains(&text) && !hex::encode(hashed).contains(&text));
    for wrong in ["", "+1", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "+")] {
        assert_eq!(SessionId::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn user_agents_are_cut() {
    for (sent, kept) in [("x".repeat(9000), USER_AGENT_BYTES_MAX), ("\u{e9}".to_owned(), 2)] {
        let source =
            SessionSource::of(IpAddr::from([192, 0, 2, 1]), &head(&format!("User-Agent: {sent}\r\n")));
        assert_eq!(source.user_agent, sent[..kept]);
    }
    let cut = format!("User-Agent: {}\u{e9}\r\n", "x".repeat(USER_AGENT_BYTES_MAX - 1));
    let source = SessionSource::of(IpAddr::from([192, 0, 2, 1]), &head(&cut));
    assert_eq!(source.user_agent, "x".repeat(USER_AGENT_BYTES_MAX - 1));
    assert_eq!(SessionSource::of(source.address, &head("")).user_agent, "");
}

#[test]
fn cookies_are_protected() {
    let BegunSession { cookie, expires_at: end, .. } =
        sessions(true, 60).begin(caller(), &head(""), source(), None, NOW).expect("random bytes");
    assert!(cookie.starts_with("__Host-cairn-session-01234567="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    assert_eq!(end, Timestamp(NOW.0 + 3_600_000));
    let token_end = Some(Timestamp(NOW.0 + 5));
    let BegunSession { cookie, expires_at: end, .. } =
        sessions(false, 60).begin(caller(), &head(""), source(), token_end, NOW).expect("random bytes");
    assert!(cookie.starts_with("cairn-session-01234567=") && !cookie.contains("Secure"), "{cookie}");
    assert_eq!(Some(end), token_end);
}

#[test]
fn only_pages_of_the_console_change_anything() {
    let console = "x-service-console: 1\r\n";
    for (fields, expected) in [
        ("Sec-Fetch-Site: same-origin\r\n", true),
        ("Sec-Fetch-Site: same-site\r\n", false),
        ("Sec-Fetch-Site: none\r\n", false),
        ("Sec-Fetch-Site: cross-site\r\nOrigin: http://console:7602\r\n", false),
        ("Origin: http://console:7602\r\n", true),
        ("Origin: http://console:7603\r\n", false),
        ("Origin: null\r\n", false),
        ("", false),
    ] {
        assert_eq!(is_of_console(&head(&format!("{fields}{console}"))), expected, "{fields}");
        assert!(!is_of_console(&head(fields)), "the header is missing");
    }
    assert!(!is_of_console(&head("Sec-Fetch-Site: same-origin\r\nx-service-console: 2\r\n")));
}

#[test]
fn pages_of_other_origins_read_nothing() {
    for (fields, expected) in [
        ("", true),
        ("Sec-Fetch-Site: same-origin\r\n", true),
        ("Sec-Fetch-Site: none\r\n", true),
        ("Sec-Fetch-Site: same-site\r\n", false),
        ("Sec-Fetch-Site: cross-site\r\n", false),
        ("Sec-Fetch-Site: \u{ff}\r\n", false),
    ] {
        assert_eq!(is_wanted_read(&head(fields)), expected, "{fields}");
    }
}
