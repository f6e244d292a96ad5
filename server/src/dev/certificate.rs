//! The certificate of `serve --dev --tls`: for this host only, signed by an authority that is created for it.
//!
//! Clients trust the authority. Its private key is never stored, so it cannot sign anything else. The certificate and its key
//! are stored in the data folder. They are replaced before they expire, and if the files do not match.

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
/// The lifetime of the certificate: less than the 398 days that browsers accept.
const LIFETIME: Duration = DAY.saturating_mul(365);
/// With less than this left, the certificate is replaced.
const LEFT_MIN: Duration = DAY.saturating_mul(30);
/// The certificate is valid from this long before its creation, because clocks differ.
const CLOCK_SKEW: Duration = DAY;

/// The files of the certificate and of the authority that clients trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DevCertificate {
    pub(crate) authority: PathBuf,
    pub(crate) pair: PairFiles,
}

/// Returns the certificate in `data_dir`; creates it, and the folder, if it is missing or about to expire.
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
            .map_err(|error| format!("it could not be stored in {}: {error}", data_dir.display()))?;
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

/// The contents of the three files.
struct Made {
    authority: String,
    certificate: String,
    key: String,
}

fn make(now: Duration) -> Result<Made, rcgen::Error> {
    let epoch = date_time_ymd(1970, 1, 1);
    let (not_before, not_after) = (epoch + now.saturating_sub(CLOCK_SKEW), epoch + now + LIFETIME);

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

/// Writes the files. If it stops halfway, they do not match, and the next start replaces them.
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

    use cairn_observe::Plane;

    use super::*;
    use crate::certificates::{Certificates, CertificatesRead};
    use crate::config::TlsSettings;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn it_is_created_once_and_replaced_when_a_file_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        let made = ensure(&data_dir).unwrap();
        let first = text(&made.pair.certificate);
        assert_eq!(std::fs::metadata(&made.pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ensure(&data_dir).unwrap(), made);
        assert_eq!(text(&made.pair.certificate), first, "clients trust it until it expires");
        for lost in [&made.authority, &made.pair.certificate, &made.pair.key] {
            std::fs::remove_file(lost).unwrap();
            ensure(&data_dir).unwrap();
            assert!(certificates::load_pair(&made.pair).is_ok() && made.authority.exists());
        }
        assert_ne!(text(&made.pair.certificate), first);
    }

    #[test]
    fn a_certificate_about_to_expire_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let found = ensure(folder.path()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(is_good(&found, now + LIFETIME - LEFT_MIN - DAY));
        assert!(!is_good(&found, now + LIFETIME - LEFT_MIN + DAY));
    }

    /// The files of a start were read once to check them, and again to present them: a pair that was replaced in between was
    /// not the one that had been checked.
    #[test]
    fn a_start_reads_certificates_once() {
        let folder = tempfile::tempdir().unwrap();
        let files = ensure(folder.path()).unwrap().pair;
        let settings =
            TlsSettings { s3: Some(files.clone()), api: Some(files.clone()), ..TlsSettings::default() };
        let read = CertificatesRead::of(&settings).unwrap();
        for file in [&files.certificate, &files.key] {
            std::fs::remove_file(file).unwrap();
        }
        assert!(CertificatesRead::of(&settings).is_err());
        let presented = Certificates::start(read, 1).unwrap();
        assert!(presented.of(Plane::Data).is_some() && presented.of(Plane::Management).is_some());
        assert!(presented.of(Plane::Console).is_none());
    }
}
