//! Passwords of shares: from an option, from standard input, or from the terminal without echo.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::Failure;

/// Longest password that the server accepts, in bytes.
const PASSWORD_BYTES_MAX: u64 = 1024;
/// The option whose value is the password.
const OPTION: &str = "--password";
/// The option that asks for it.
const PROMPT: &str = "--ask-password";

/// The options that give a password.
pub(super) struct PasswordOptions<'o> {
    /// The value of `--password`; `-` means standard input.
    pub(super) given: Option<&'o str>,
    /// Whether it is read from standard input.
    pub(super) is_on_stdin: bool,
    /// Whether the terminal is asked for it.
    pub(super) is_asked: bool,
}

/// Replaces `--password` without a value by the option that asks for the password.
pub(crate) fn with_password_prompt<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let takes_password =
        [["share", "create"], ["share", "update"]].iter().any(|words| arguments.starts_with(words));
    let end = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
    let mut replaced = arguments.to_vec();
    let mut is_value = false;
    for (index, argument) in arguments.iter().enumerate().take(end) {
        let is_password = takes_password && !is_value && *argument == OPTION;
        let has_value = arguments.get(index + 1).is_some_and(|next| !next.starts_with("--"));
        if is_password && !has_value {
            replaced[index] = PROMPT;
        }
        is_value = is_password && has_value;
    }
    replaced
}

impl PasswordOptions<'_> {
    /// Returns the password, if one is given.
    ///
    /// # Errors
    /// Options that contradict each other, or a password that cannot be read.
    pub(super) fn read(&self) -> Result<Option<String>, Failure> {
        let chosen = [self.given.is_some(), self.is_on_stdin, self.is_asked];
        if chosen.iter().filter(|is_chosen| **is_chosen).count() > 1 {
            let message = "give the password once: with --password, --password-stdin or --ask-password";
            return Err(Failure::WrongUsage(message.to_owned()));
        }
        let password = match self.given {
            Some("-") => from_stdin()?,
            Some(password) => password.to_owned(),
            None if self.is_on_stdin => from_stdin()?,
            None if self.is_asked => from_terminal()?,
            None => return Ok(None),
        };
        if password.is_empty() {
            return Err(Failure::WrongUsage("the password is empty".to_owned()));
        }
        Ok(Some(password))
    }
}

/// Reads the first line of standard input.
fn from_stdin() -> Result<String, Failure> {
    first_line(std::io::stdin().lock()).map_err(|error| unreadable(&error).into())
}

fn unreadable(error: &std::io::Error) -> String {
    format!("the password could not be read: {error}")
}

/// Returns the first line, without its end.
fn first_line(source: impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    // One more than allowed, so that the server refuses a longer one instead of getting a part of it.
    source.take(PASSWORD_BYTES_MAX + 2).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Asks for the password twice on the terminal, which shows nothing of it.
fn from_terminal() -> Result<String, Failure> {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal = opened.map_err(|error| {
        format!(
            "there is no terminal to ask for the password: {error}\n  \
             --password-stdin reads it from standard input"
        )
    })?;
    let echo_off = EchoOff::begin(&terminal).map_err(|error| unreadable(&error))?;
    let mut ask = |question: &str| -> Result<String, Failure> {
        let asked = write!(terminal, "{question}: ").and_then(|()| {
            let line = first_line(BufReader::new(terminal.try_clone()?));
            // The end of the line was not echoed.
            writeln!(terminal)?;
            line
        });
        asked.map_err(|error| unreadable(&error).into())
    };
    let (password, again) = (ask("Password")?, ask("Password again")?);
    drop(echo_off);
    if password == again { Ok(password) } else { Err("the two passwords differ".into()) }
}

/// Turns the terminal's echo off until it is dropped.
struct EchoOff {
    terminal: File,
    before: Termios,
}

impl EchoOff {
    fn begin(terminal: &File) -> std::io::Result<Self> {
        let terminal = terminal.try_clone()?;
        let before = tcgetattr(&terminal)?;
        let mut echo_off = before.clone();
        echo_off.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &echo_off)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // Nothing can be done if it fails; shells restore their terminal.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_without_a_value_is_asked_for() {
        for (arguments, expected) in [
            (
                &["share", "create", "a/b", "--password"][..],
                &["share", "create", "a/b", "--ask-password"][..],
            ),
            (&["share", "create", "--password", "--json"], &["share", "create", "--ask-password", "--json"]),
            (&["share", "create", "--password", "x"], &["share", "create", "--password", "x"]),
            (&["share", "create", "--password", "-"], &["share", "create", "--password", "-"]),
            (&["share", "update", "--", "--password"], &["share", "update", "--", "--password"]),
            (&["token", "create", "--password"], &["token", "create", "--password"]),
        ] {
            assert_eq!(with_password_prompt(arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn the_first_line_is_the_password() {
        let read = |text: &str| first_line(text.as_bytes()).unwrap();
        assert_eq!(
            (read("secret\n"), read("a b\r\nc"), read("")),
            ("secret".into(), "a b".into(), String::new())
        );
        assert!(read(&"x".repeat(5000)).len() > 1024, "the server refuses it");
    }
}
