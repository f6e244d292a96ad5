//! Browser forms: the signature of a policy document.
//!
//! Source: "Authenticating Requests in Browser-Based Uploads Using POST (AWS Signature Version 4)" in the Amazon S3 API
//! reference. The string to sign is the policy as sent, in Base64. The signature covers nothing else: the caller compares the
//! other fields with the conditions of the policy.

use super::claim::Claim;
use super::date::AmzDate;
use super::error::{AuthError, MalformedReason, UnsupportedSigning};
use super::limits::{ALGORITHM, ALGORITHM_ASYMMETRIC, PRESIGNED_LIFETIME_SECONDS_MAX};
use super::payload::Payload;
use super::scope::{Scope, SignedHeaders};
use super::verify::{Authenticator, check_lifetime};
use crate::credential::Credentials;
use crate::request::{Authentication, SignatureKind, SignedForm};
use crate::throttle::RootAttempts;
use cairn_model::Timestamp;

impl<C: Credentials> Authenticator<C> {
    /// Verifies the signature of a form's policy and returns its signer. `now` is the wall clock time. The root credential is
    /// refused unchecked if `root_attempts` says so.
    ///
    /// A signature is valid for as long as that of a presigned URL can be. The policy may end earlier; the caller checks that.
    ///
    /// # Errors
    /// An [`AuthError`] with its S3 code, status and message.
    pub fn authenticate_form(
        &self,
        form: &SignedForm<'_>,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        if !has_version_4_fields(form) && form.version_2.is_present() && self.accepts_version_2() {
            return self.authenticate_form_version_2(form, now, root_attempts);
        }
        let (claim, policy) = claim(form)?;
        check_lifetime(claim.date, PRESIGNED_LIFETIME_SECONDS_MAX, now)?;
        self.verify_text(&claim, policy.as_bytes(), now, root_attempts)
    }
}

fn has_version_4_fields(form: &SignedForm<'_>) -> bool {
    [form.algorithm, form.credential, form.signature].iter().any(Option::is_some)
}

/// Reads the claim of a form, and its policy.
fn claim<'a>(form: &SignedForm<'a>) -> Result<(Claim<'a>, &'a str), AuthError> {
    if form.has_security_token {
        return Err(AuthError::NotImplemented(UnsupportedSigning::SecurityToken));
    }
    let &SignedForm { algorithm, credential, date, signature, policy, .. } = form;
    if !has_version_4_fields(form) {
        let is_anonymous = !form.version_2.is_present();
        return Err(if is_anonymous { AuthError::NoAuthentication } else { AuthError::SignatureVersion2 });
    }
    let required = |value: Option<&'a str>, name| {
        value.filter(|value| !value.is_empty()).ok_or(AuthError::FormFieldMissing { name })
    };
    match required(algorithm, "X-Amz-Algorithm")? {
        ALGORITHM => {}
        ALGORITHM_ASYMMETRIC => return Err(AuthError::NotImplemented(UnsupportedSigning::Asymmetric)),
        _ => return Err(AuthError::FormMalformed(MalformedReason::Algorithm)),
    }
    let scope = Scope::parse(required(credential, "X-Amz-Credential")?).map_err(AuthError::FormMalformed)?;
    let date = AmzDate::parse_basic(required(date, "X-Amz-Date")?.as_bytes());
    let date = date.ok_or(AuthError::FormMalformed(MalformedReason::Date))?;
    scope.check_day(&date).map_err(AuthError::FormMalformed)?;
    let signature = required(signature, "X-Amz-Signature")?.as_bytes();
    let policy = required(policy, "Policy")?;
    let (kind, signed_headers, payload) =
        (SignatureKind::Form, SignedHeaders { text: "" }, Payload::UNSIGNED);
    Ok((Claim { kind, scope, signed_headers, signature, date, payload }, policy))
}

#[cfg(test)]
mod tests {
    use super::super::sign;
    use crate::{
        AuthError, Authenticator, RootAttempts, RootCredential, SignatureKind, SignedForm, SignedFormVersion2,
    };
    use cairn_model::Timestamp;

    /// 2015-12-29T00:00:00Z, the date of the example in the API reference.
    const SIGNED_AT: u64 = 1_451_347_200;
    const DAY: u64 = 24 * 60 * 60;
    const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const CREDENTIAL: &str = "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request";
    /// The policy of the example, and its signature as the API reference prints it ("Example: Browser-Based Upload using
    /// HTTP POST").
    const POLICY: &str = "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAiMjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9";
    const SIGNATURE: &str = "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e";

    fn example() -> SignedForm<'static> {
        SignedForm {
            algorithm: Some("AWS4-HMAC-SHA256"),
            credential: Some(CREDENTIAL),
            date: Some("20151229T000000Z"),
            signature: Some(SIGNATURE),
            policy: Some(POLICY),
            ..SignedForm::default()
        }
    }

    fn checked_at(form: &SignedForm<'_>, seconds: u64, attempts: RootAttempts) -> Result<(), AuthError> {
        let authenticator = Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY));
        let found = authenticator.authenticate_form(form, Timestamp(seconds * 1000), attempts)?;
        assert_eq!((&*found.access_key, found.kind), (ACCESS_KEY, SignatureKind::Form));
        Ok(())
    }

    fn checked(form: &SignedForm<'_>) -> Result<(), AuthError> {
        checked_at(form, SIGNED_AT, RootAttempts::Checked)
    }

    #[test]
    fn example_of_the_api_reference_is_valid() {
        assert_eq!(sign(SECRET_KEY, "20151229", "us-east-1", POLICY.as_bytes()), SIGNATURE);
        assert_eq!(checked(&example()), Ok(()));
    }

    #[test]
    fn changed_policy_signature_or_key_is_refused() {
        let code = |form: &SignedForm<'_>| checked(form).map_err(|error| error.code());
        let policy = format!("{}8", &POLICY[..POLICY.len() - 1]);
        let changed = SignedForm { policy: Some(&policy), ..example() };
        assert_eq!(code(&changed), Err("SignatureDoesNotMatch"));
        for signature in [&SIGNATURE[1..], &SIGNATURE.to_uppercase(), &format!("{SIGNATURE}0"), "x"] {
            let changed = SignedForm { signature: Some(signature), ..example() };
            assert_eq!(code(&changed), Err("SignatureDoesNotMatch"), "{signature}");
        }
        let other = CREDENTIAL.replace(ACCESS_KEY, "other");
        let unknown = SignedForm { credential: Some(&other), ..example() };
        assert_eq!(code(&unknown), Err("InvalidAccessKeyId"));
        let refused = checked_at(&example(), SIGNED_AT, RootAttempts::Refused);
        assert_eq!(refused, Err(AuthError::TooManyFailures));
    }

    #[test]
    fn signature_is_valid_from_its_date_for_seven_days() {
        let code = |seconds| {
            checked_at(&example(), seconds, RootAttempts::Checked).map_err(|error| error.code().to_owned())
        };
        assert_eq!(code(SIGNED_AT - 15 * 60), Ok(()));
        assert_eq!(code(SIGNED_AT + 7 * DAY), Ok(()));
        assert_eq!(code(SIGNED_AT - 15 * 60 - 1), Err("AccessDenied".to_owned()));
        assert_eq!(code(SIGNED_AT + 7 * DAY + 1), Err("AccessDenied".to_owned()));
    }

    #[test]
    fn missing_and_malformed_fields_are_named() {
        type Change = fn(&mut SignedForm<'static>);
        let cases: [(Change, u16, &str, &str); 12] = [
            (|form| form.algorithm = None, 400, "InvalidArgument", "'X-Amz-Algorithm'"),
            (|form| form.credential = None, 400, "InvalidArgument", "'X-Amz-Credential'"),
            (|form| form.date = None, 400, "InvalidArgument", "'X-Amz-Date'"),
            (|form| form.signature = Some(""), 400, "InvalidArgument", "'X-Amz-Signature'"),
            (|form| form.policy = None, 400, "InvalidArgument", "'Policy'"),
            (|form| form.algorithm = Some("AWS4-HMAC-SHA1"), 400, "InvalidArgument", "AWS4-HMAC-SHA256"),
            (|form| form.algorithm = Some("AWS4-ECDSA-P256-SHA256"), 501, "NotImplemented", "s3v4"),
            (|form| form.credential = Some("a/b"), 400, "InvalidArgument", "YYYYMMDD"),
            (|form| form.date = Some("2015-12-29T00:00:00Z"), 400, "InvalidArgument", "X-Amz-Date"),
            (|form| form.date = Some("20151230T000000Z"), 400, "InvalidArgument", "not the same"),
            (|form| form.has_security_token = true, 501, "NotImplemented", "session token"),
            (|form| *form = SignedForm::default(), 403, "AccessDenied", "Access Denied"),
        ];
        for (change, status, code, words) in cases {
            let mut form = example();
            change(&mut form);
            let error = checked(&form).expect_err(words);
            assert_eq!((error.status(), error.code()), (status, code), "{words}");
            assert!(error.message().contains(words), "{words}: {error}");
        }
        let fields = SignedFormVersion2 { access_key: Some("a"), signature: None };
        let version_2 = SignedForm { version_2: fields, ..SignedForm::default() };
        assert_eq!(checked(&version_2), Err(AuthError::SignatureVersion2));
    }
}
