//! Quotes text for shell commands and Python programs.
//!
//! Secrets may contain any visible character, including `$`, quotes and backslashes. A pasted command must use the configured
//! secret, and must execute no part of it.

/// Returns `text` as one word of a POSIX shell: unchanged if it contains no special character, otherwise in single quotes,
/// within which only the single quote is special.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns `text` as a Python string literal.
pub(crate) fn python_string(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            _ if character.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => literal.push(character),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SPECIAL: [&str; 8] = [
        "plain-Text_1.2/3:4@5%6+7,8=9",
        "",
        "$HOME`id`$(id)\\",
        "it's '' ''' quoted",
        "\"double\" \\\" \\\\",
        "!history;&|<>*?[~]{a,b}#c",
        "-n",
        "\\u0041\\n",
    ];

    /// The banner of `--dev` contained unquoted secrets. The shell changed a secret with `$`, so that signatures failed, and
    /// executed one with a backtick.
    #[test]
    fn a_shell_reads_back_quoted_text() {
        for text in SPECIAL {
            let script =
                format!("SECRET={}\nprintf '%s.' \"$SECRET\" {}", shell_word(text), shell_word(text));
            let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}.{text}."));
        }
        assert_eq!(shell_word("CAIRN0123"), "CAIRN0123", "plain text is easier to read without quotes");
    }

    #[test]
    fn python_strings_are_escaped() {
        assert_eq!(python_string("a$'b"), "\"a$'b\"");
        assert_eq!(python_string("a\"b\\"), "\"a\\\"b\\\\\"");
        assert_eq!(python_string("a\nb"), "\"a\\u000ab\"");
    }
}
