//! The certificate of `serve --dev --tls`: for this host alone, signed by an authority that is made for it and forgotten.
//!
//! Clients trust the authority, whose key is kept nowhere: nobody can sign anything else with it. The pair lies in the data
//! folder and is made anew before it ends to be valid, and when its files do not go together.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::certificates;
use crate::config::PairFiles;

const AUTHORITY_FILE: &str = "dev-tls-authority.pem";
const CERTIFICATE_FILE: &str = "dev-tls-certificate.pem";
const KEY_FILE: &str = "dev-tls-key.pem";

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long the certificate is valid: less than what browsers accept at the most (398 days).
const LIFE: Duration = DAY.saturating_mul(365);
/// With less than this left, another one is made.
const LEFT_MIN: Duration = DAY.saturating_mul(30);
/// It is valid from a little before it was made, for clocks differ.
const CLOCKS_DIFFER: Duration = DAY;

/// Where the certificate and what clients trust lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DevCertificate {
    pub(crate) authority: PathBuf,
    pub(crate) pair: PairFiles,
}

/// The certificate in `data_dir`, made together with the folder if it is not there or not for long.
pub(crate) fn ensure(data_dir: &Path) -> Result<DevCertificate, String> {
    let file = |name: &str| data_dir.join(name);
    let found = DevCertificate {
        authority: file(AUTHORITY_FILE),
        pair: PairFiles { certificate: file(CERTIFICATE_FILE), key: file(KEY_FILE) },
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if !is_good(&found, now) {
        let made = make(now).map_err(|error| error.to_string())?;
        keep(data_dir, &found, &made)
            .map_err(|error| format!("it could not be kept in {}: {error}", data_dir.display()))?;
    }
    Ok(found)
}

fn is_good(found: &DevCertificate, now: Duration) -> bool {
    let left = |end: i64| u64::try_from(end).unwrap_or(0).saturating_sub(now.as_secs());
    let pair = certificates::load_pair(&found.pair).ok();
    let is_valid = pair
        .and_then(|pair| pair.validity())
        .is_some_and(|range| left(range.end) > LEFT_MIN.as_secs() && left(range.start) == 0);
    is_valid && found.authority.exists()
}

/// The three files' texts.
struct Made {
    authority: String,
    certificate: String,
    key: String,
}

fn make(now: Duration) -> Result<Made, rcgen::Error> {
    let epoch = date_time_ymd(1970, 1, 1);
    let (not_before, not_after) = (epoch + now.saturating_sub(CLOCKS_DIFFER), epoch + now + LIFE);

    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "Cairn development authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    (authority.not_before, authority.not_after) = (not_before, not_after);
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;

    let mut own = CertificateParams::new(["localhost".to_owned()])?;
    own.distinguished_name.push(DnType::CommonName, "localhost");
    own.subject_alt_names
        .extend([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].map(SanType::IpAddress));
    own.use_authority_key_identifier_extension = true;
    own.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    (own.not_before, own.not_after) = (not_before, not_after);
    let key = KeyPair::generate()?;
    let certificate = own.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok(Made {
        authority: authority_certificate.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Writes the files. When it stops halfway, they do not go together, and the next start makes others.
fn keep(data_dir: &Path, to: &DevCertificate, made: &Made) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    write(&to.pair.key, &made.key, 0o600)?;
    write(&to.authority, &made.authority, 0o644)?;
    write(&to.pair.certificate, &made.certificate, 0o644)?;
    File::open(data_dir)?.sync_all()
}

fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn it_is_made_once_and_again_when_it_is_of_no_use() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        let made = ensure(&data_dir).unwrap();
        let first = text(&made.pair.certificate);
        assert_eq!(std::fs::metadata(&made.pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ensure(&data_dir).unwrap(), made);
        assert_eq!(text(&made.pair.certificate), first, "clients trust it for as long as it lasts");
        for lost in [&made.authority, &made.pair.certificate, &made.pair.key] {
            std::fs::remove_file(lost).unwrap();
            ensure(&data_dir).unwrap();
            assert!(certificates::load_pair(&made.pair).is_ok() && made.authority.exists());
        }
        assert_ne!(text(&made.pair.certificate), first);
    }

    #[test]
    fn one_that_ends_soon_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let found = ensure(folder.path()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(is_good(&found, now + LIFE - LEFT_MIN - DAY));
        assert!(!is_good(&found, now + LIFE - LEFT_MIN + DAY));
    }
}
