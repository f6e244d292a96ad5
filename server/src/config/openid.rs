//! Section `console.openid`: sign-in for people.

use std::net::IpAddr;
use std::path::Path;

use cairn_identity::policy::validate_name;
use cairn_openid::{OpenIdSettings, RoleValues};
use cairn_trust::{Authorities, UnusablePem};

use super::key::Key;
use super::keys;
use super::problem::Problem;
use super::reader::Reader;
use super::value::{HTTPS, Value};
use crate::small_file::{self, SmallFileError};

/// Keys that have no effect without an issuer.
const OTHERS: [&Key; 12] = [
    &keys::OPENID_NAME,
    &keys::OPENID_CLIENT_ID,
    &keys::OPENID_CLIENT_SECRET,
    &keys::OPENID_CONSOLE_URL,
    &keys::OPENID_SCOPES,
    &keys::OPENID_ROLE_CLAIM,
    &keys::OPENID_SYSTEM_ADMINS,
    &keys::OPENID_STORAGE_ADMINS,
    &keys::OPENID_AUDITORS,
    &keys::OPENID_MEMBERS,
    &keys::OPENID_NAME_CLAIM,
    &keys::OPENID_CA_FILE,
];
/// Maximum length of the client's secret: it is sent in a header.
const SECRET_BYTES_MAX: usize = 1024;
/// Maximum size of a file of certificate authorities.
const CA_FILE_BYTES_MAX: u64 = 1 << 20;

impl Reader<'_> {
    /// Reads the section. `hosts` are the names of the console. The inner `None` means that it is off.
    pub(super) fn openid(&mut self, hosts: &[String]) -> Option<Option<OpenIdSettings>> {
        let Some(issuer) = self.text(&keys::OPENID_ISSUER)? else {
            let given = OTHERS.iter().find(|key| self.values.is_given(key));
            return match given {
                None => Some(None),
                Some(key) => {
                    let (given, issuer) = (self.values.source(key), keys::OPENID_ISSUER.variable());
                    self.inconsistent(format!("{given} is set, but {issuer} is not; set both, or remove it"))
                }
            };
        };
        let before = self.problems.len();
        self.check_secure(&keys::OPENID_ISSUER, &issuer);
        let name = self.text(&keys::OPENID_NAME).flatten();
        let client_id = self.needed(&keys::OPENID_CLIENT_ID);
        let client_secret = self.client_secret();
        let console_url = self.needed(&keys::OPENID_CONSOLE_URL);
        if let Some(url) = &console_url {
            self.check_secure(&keys::OPENID_CONSOLE_URL, url);
            self.check_host(url, hosts);
        }
        let scopes = self.scopes();
        let (role_claim, name_claim) =
            (self.needed(&keys::OPENID_ROLE_CLAIM), self.needed(&keys::OPENID_NAME_CLAIM));
        let roles = self.roles();
        let authorities = self.authorities();
        if self.problems.len() > before {
            return None;
        }
        Some(Some(OpenIdSettings {
            name: name?,
            issuer,
            client_id: client_id?,
            client_secret: client_secret?,
            scopes: scopes?,
            role_claim: role_claim?,
            roles: roles?,
            name_claim: name_claim?,
            console_url: console_url?,
            authorities: authorities?,
        }))
    }

    fn inconsistent<T>(&mut self, text: String) -> Option<T> {
        self.problems.push(Problem::Inconsistent(text));
        None
    }

    fn text(&mut self, key: &'static Key) -> Option<Option<String>> {
        self.optional(key, |value| if let Value::Text(text) = value { Some(text.clone()) } else { None })
    }

    fn list(&mut self, key: &'static Key) -> Option<Vec<String>> {
        self.read(key, |value| if let Value::List(list) = value { Some(list.clone()) } else { None })
    }

    /// Reads a text that must not be empty.
    fn needed(&mut self, key: &'static Key) -> Option<String> {
        match self.text(key)? {
            Some(text) if !text.is_empty() => Some(text),
            _ => {
                self.problems.push(Problem::Missing {
                    variable: key.variable(),
                    key: key.name,
                    doc: key.doc,
                });
                None
            }
        }
    }

    fn client_secret(&mut self) -> Option<Option<zeroize::Zeroizing<String>>> {
        let key = &keys::OPENID_CLIENT_SECRET;
        let secret =
            self.optional(
                key,
                |value| {
                    if let Value::Secret(secret) = value { Some(secret.clone()) } else { None }
                },
            )?;
        let text = secret.map(|secret| zeroize::Zeroizing::new(secret.expose().to_owned()));
        if text.as_ref().is_some_and(|text| !(1..=SECRET_BYTES_MAX).contains(&text.len())) {
            let expected = format!("1 to {SECRET_BYTES_MAX} bytes long");
            self.problems.push(Problem::Invalid { name: self.values.source(key), expected });
        }
        Some(text)
    }

    /// Without TLS, tokens and cookies are sent in the clear. On this host, nobody else reads them.
    fn check_secure(&mut self, key: &'static Key, url: &str) {
        if !url.starts_with(HTTPS) && !is_loopback(host_of(url)) {
            let expected =
                "an https URL; http is allowed only for localhost and loopback addresses".to_owned();
            self.problems.push(Problem::Invalid { name: self.values.source(key), expected });
        }
    }

    /// The provider sends browsers to this host, which must then be one of the console.
    fn check_host(&mut self, url: &str, hosts: &[String]) {
        let host = host_of(url);
        let is_known = hosts.iter().any(|known| host_of(known).eq_ignore_ascii_case(host));
        if !is_known && !is_loopback(host) && address_of(host).is_none() {
            let (given, hosts) =
                (self.values.source(&keys::OPENID_CONSOLE_URL), keys::CONSOLE_HOSTS.variable());
            let _: Option<()> = self.inconsistent(format!(
                "{given} has a host that is not one of the console; add it to {hosts}"
            ));
        }
    }

    /// Reads the scopes, joined by spaces.
    fn scopes(&mut self) -> Option<String> {
        let key = &keys::OPENID_SCOPES;
        let scopes = self.list(key)?;
        let is_token = |scope: &String| {
            scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        };
        if !scopes.iter().any(|scope| scope == "openid") || !scopes.iter().all(is_token) {
            let expected = "a list of scopes of which openid is one".to_owned();
            self.problems.push(Problem::Invalid { name: self.values.source(key), expected });
        }
        Some(scopes.join(" "))
    }

    /// Reads which values give which role, and which policies. A value gives either, and somebody can sign in.
    fn roles(&mut self) -> Option<RoleValues> {
        let all = [&keys::OPENID_SYSTEM_ADMINS, &keys::OPENID_STORAGE_ADMINS, &keys::OPENID_AUDITORS];
        let [system_admins, storage_admins, auditors] = all.map(|key| self.list(key));
        let members = self.members()?;
        let all = [all[0], all[1], all[2], &keys::OPENID_MEMBERS];
        let lists = [
            system_admins?,
            storage_admins?,
            auditors?,
            members.iter().map(|(value, _)| value.clone()).collect(),
        ];
        for (index, list) in lists.iter().enumerate() {
            for (other, earlier) in lists.iter().enumerate().take(index) {
                if list.iter().any(|value| earlier.contains(value)) {
                    let (one, two) = (self.values.source(all[other]), self.values.source(all[index]));
                    return self.inconsistent(format!("{one} and {two} contain the same value"));
                }
            }
        }
        if lists.iter().all(Vec::is_empty) {
            let names = all.map(Key::variable).join(", ");
            return self.inconsistent(format!("nobody could sign in: set one of {names}"));
        }
        let [system_admins, storage_admins, auditors, _] = lists;
        Some(RoleValues { system_admins, storage_admins, auditors, members })
    }

    /// Reads entries `value = policy`. The last `=` counts, because names of groups may have some (LDAP).
    fn members(&mut self) -> Option<Vec<(String, String)>> {
        let key = &keys::OPENID_MEMBERS;
        let pair = |entry: &String| {
            let (value, policy) = entry.rsplit_once('=')?;
            let (value, policy) = (value.trim(), policy.trim());
            let is_valid = !value.is_empty() && validate_name(policy).is_ok();
            is_valid.then(|| (value.to_owned(), policy.to_owned()))
        };
        let entries = self.list(key)?;
        let members: Option<Vec<_>> = entries.iter().map(pair).collect();
        if members.is_none() {
            let expected = "a list of entries such as team = readers, each with a value of the claim and \
                            the name of a policy";
            let (name, expected) = (self.values.source(key), expected.to_owned());
            self.problems.push(Problem::Invalid { name, expected });
        }
        members
    }

    fn authorities(&mut self) -> Option<Authorities> {
        let key = &keys::OPENID_CA_FILE;
        let path = self
            .optional(key, |value| if let Value::Path(path) = value { Some(path.clone()) } else { None })?;
        let Some(path) = path else { return Some(Authorities::Host) };
        match read_authorities(&path) {
            Ok(authorities) => Some(authorities),
            Err(why) => {
                let given = self.values.source(key);
                self.inconsistent(format!("{given}: {} {why}", path.display()))
            }
        }
    }
}

fn read_authorities(path: &Path) -> Result<Authorities, String> {
    let (text, _) = small_file::read(path, CA_FILE_BYTES_MAX).map_err(|error| match error {
        SmallFileError::Io(error) => format!("cannot be read: {error}"),
        SmallFileError::NotRegular => "is not a regular file".to_owned(),
        SmallFileError::TooLarge => format!("has more than {CA_FILE_BYTES_MAX} bytes"),
    })?;
    Authorities::of_pem(&text).map_err(|unusable| match unusable {
        UnusablePem::Empty => "contains no certificate (PEM)".to_owned(),
        UnusablePem::Invalid(why) => format!("contains no usable certificates: {why}"),
    })
}

/// Returns the host of a URL or of `host:port`, with the brackets of an IPv6 address.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => &authority[..at],
        _ => authority,
    }
}

fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || address_of(host).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{host_of, is_loopback};

    #[test]
    fn hosts_are_found_in_urls() {
        for (url, host) in [
            ("https://a.example/x:1", "a.example"),
            ("https://a.example:8443", "a.example"),
            ("http://[::1]:7602/", "[::1]"),
            ("http://[::1]", "[::1]"),
            ("nas:7602", "nas"),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
        assert!(["localhost", "127.0.0.9", "[::1]"].into_iter().all(is_loopback));
        assert!(!["localhost.example", "10.0.0.1", "127.0.0.1.example", ""].into_iter().any(is_loopback));
    }
}
