//! Names of the environment variables that the client reads.

/// Holds the management token. It is read from nowhere else: arguments are visible to every user of the host.
pub(crate) const TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";
/// Holds the master key of a store whose encrypted objects are salvaged. With `_FILE` after it, names a file that holds it.
pub(crate) const MASTER_KEY_VARIABLE: &str = "SERVICE_CREDENTIAL_MASTER_KEY";
/// Names a PEM file of certificate authorities that the client trusts instead of those of the host.
pub(crate) const CA_VARIABLE: &str = "SERVICE_CA_CERTIFICATE";
/// Holds the address of the management plane that commands use without `--endpoint`.
pub(crate) const ENDPOINT_VARIABLE: &str = "SERVICE_MANAGEMENT_ENDPOINT";
/// Hold the credential of the store that objects are imported from. It is read from nowhere else.
pub(crate) const SOURCE_ACCESS_KEY_VARIABLE: &str = "SOURCE_ACCESS_KEY";
pub(crate) const SOURCE_SECRET_KEY_VARIABLE: &str = "SOURCE_SECRET_KEY";
/// Names a PEM file of certificate authorities that are trusted for that store instead of those of the host.
pub(crate) const SOURCE_CA_VARIABLE: &str = "SOURCE_CA_CERTIFICATE";
/// Hold the credential of the store that objects are exported to. It is read from nowhere else.
pub(crate) const TARGET_ACCESS_KEY_VARIABLE: &str = "TARGET_ACCESS_KEY";
pub(crate) const TARGET_SECRET_KEY_VARIABLE: &str = "TARGET_SECRET_KEY";
/// Names a PEM file of certificate authorities that are trusted for that store instead of those of the host.
pub(crate) const TARGET_CA_VARIABLE: &str = "TARGET_CA_CERTIFICATE";
/// Holds the address of that store for commands without `--to-endpoint`.
pub(crate) const TARGET_ENDPOINT_VARIABLE: &str = "TARGET_ENDPOINT";
