//! Advice when `serve` has no secrets: try `--dev`, or create them.

use super::program;
use super::secrets::GENERATED;
use crate::config::Problem;

/// Returns what to print after the problems, if secrets are missing: `serve --dev`, and commands that create the missing
/// secrets and start the service with them.
pub(crate) fn advice(problems: &[Problem]) -> Option<String> {
    let is_missing = |variable: &str| {
        problems.iter().any(
            |problem| matches!(problem, Problem::Missing { variable: missing, .. } if missing == variable),
        )
    };
    let missing: Vec<String> =
        GENERATED.iter().map(|key| key.variable()).filter(|variable| is_missing(variable)).collect();
    if missing.is_empty() {
        return None;
    }
    let lines: Vec<String> =
        missing.iter().map(|variable| format!("  {variable} \"{}\"", value(variable))).collect();
    let (lines, cairn) = (lines.join(" \\\n"), program::shell_command());
    Some(format!(
        r"
To try Cairn on this machine, with secrets that it creates itself:

{cairn} serve --dev

To create the missing secrets in a new file that only you can read, and start with them:

(umask 077; set -C; printf '%s=%s\n' \
{lines} \
  > cairn.env)
set -a; . ./cairn.env; set +a
{cairn} serve

Keep the file: a store opens only with the master key that it was created with."
    ))
}

/// Returns shell text that creates the value of a secret.
fn value(variable: &str) -> &'static str {
    if variable.ends_with("ACCESS_KEY") { "CAIRN$(openssl rand -hex 8)" } else { "$(openssl rand -hex 32)" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_secrets_are_created() {
        let missing = |variable: &str| Problem::Missing { variable: variable.to_owned(), key: "", doc: "" };
        assert_eq!(advice(&[Problem::Inconsistent("other".to_owned())]), None);
        assert_eq!(advice(&[missing("SERVICE_OTHER")]), None);
        let text = advice(&[missing("SERVICE_ROOT_ACCESS_KEY")]).unwrap();
        assert!(text.contains("serve --dev") && text.contains("  SERVICE_ROOT_ACCESS_KEY \"CAIRN$("));
        assert!(!text.contains("SERVICE_ROOT_SECRET_KEY"), "{text}");
    }
}
