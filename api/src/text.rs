//! Texts with a format: ids, times, names, words. A list of words is open, so that clients read those of other versions.

use cairn_http1::iso8601_millis;
use cairn_model::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares types of texts with the keywords of their schemas. The server checks the texts of requests itself.
macro_rules! text {
    ($($(#[doc = $doc:literal])* $name:ident($($keywords:tt)*);)+) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(extend($($keywords)*))]
        pub struct $name(::std::borrow::Cow<'static, str>);

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&'static str> for $name {
            fn from(text: &'static str) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0.into_owned()
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

pub(crate) use text;

text! {
    /// A UUID; version 7 if the server generated it.
    Id("format" = "uuid");
    /// The id of a webhook, an event or a delivery: a UUID of version 7.
    EventId("pattern" = "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$");
    /// RFC 3339; responses are in UTC with milliseconds.
    Time("format" = "date-time");
    /// An IPv4 or IPv6 address.
    IpAddress("anyOf" = [{"format": "ipv4"}, {"format": "ipv6"}]);
    /// A name for people. Printable ASCII characters without leading or trailing spaces.
    Name("minLength" = 1, "maxLength" = 128, "pattern" = "^[!-~]([ -~]*[!-~])?$");
    /// A purpose, for people.
    Description("maxLength" = 1024);
    /// AWS's rules for bucket names apply.
    BucketName("pattern" = r"^(?!xn--|sthree-|amzn-s3-demo-)(?!.*\.\.)(?![0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$)(?!.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$");
    /// At most 1024 bytes of UTF-8.
    ObjectKey("minLength" = 1, "maxLength" = 1024);
    /// The id of a version, or null as text.
    VersionId("minLength" = 1, "maxLength" = 64);
    /// The id of an unfinished multipart upload.
    UploadId("minLength" = 1, "maxLength" = 64);
    /// Without quotes.
    EntityTag("pattern" = "^[0-9a-f]{32}(-[0-9]+)?$");
    /// The role of a management token, or of the root credential.
    Role("enum" = ["system_admin", "storage_admin", "auditor"]);
}

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        iso8601_millis(time.0).into()
    }
}
