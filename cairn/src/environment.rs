//! Names of the environment variables that the client reads.

/// Holds the management token. It is read from nowhere else: arguments are visible to every user of the host.
pub(crate) const TOKEN_VARIABLE: &str = "SERVICE_MANAGEMENT_TOKEN";
/// Names a PEM file of certificate authorities that the client trusts instead of those of the host.
pub(crate) const CA_VARIABLE: &str = "SERVICE_CA_CERTIFICATE";
/// Holds the address of the management plane that commands use without `--endpoint`.
pub(crate) const ENDPOINT_VARIABLE: &str = "SERVICE_MANAGEMENT_ENDPOINT";
