//! Text of the user's within lines for other programs: a word of a shell command, a string of a Python program.
//!
//! Secrets may hold every visible character, `$`, quotes and backslashes included; whoever pastes a line must send what
//! was configured, and nothing of it may run.

/// `text` as one word of a POSIX shell: as it is where nothing in it means anything to a shell, else in single quotes,
/// within which only the single quote itself does.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` as a Python string literal.
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

    const AWKWARD: [&str; 8] = [
        "plain-Text_1.2/3:4@5%6+7,8=9",
        "",
        "$HOME`id`$(id)\\",
        "it's '' ''' quoted",
        "\"double\" \\\" \\\\",
        "!history;&|<>*?[~]{a,b}#c",
        "-n",
        "\\u0041\\n",
    ];

    /// The lines of `--dev` carried secrets as they were: one with `$` in it became another one in the shell, and
    /// signatures failed; one with a backtick ran.
    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in AWKWARD {
            let script =
                format!("SECRET={}\nprintf '%s.' \"$SECRET\" {}", shell_word(text), shell_word(text));
            let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}.{text}."));
        }
        assert_eq!(shell_word("CAIRN0123"), "CAIRN0123", "what needs no quotes is easier to read without");
    }

    #[test]
    fn python_strings_hold_no_end_of_their_own() {
        assert_eq!(python_string("a$'b"), "\"a$'b\"");
        assert_eq!(python_string("a\"b\\"), "\"a\\\"b\\\\\"");
        assert_eq!(python_string("a\nb"), "\"a\\u000ab\"");
    }
}
