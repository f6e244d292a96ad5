//! Asks for a confirmation before content is deleted.

use std::io::IsTerminal;

use super::print_error;
use crate::failure::{Failure, Outcome};

/// Says what will be done, and waits until the user types `word`. `--yes` skips the question; without a terminal it is needed.
pub(crate) fn confirm(what: &str, word: &str, is_confirmed: bool) -> Outcome {
    if is_confirmed {
        return Ok(());
    }
    let refused = |text: &str| Failure::Failed(format!("{what}\n  nothing was deleted: {text}"));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused("--yes confirms it where no terminal can"));
    }
    print_error(&format!("{what}\nType {word} to confirm: "));
    let mut typed = String::new();
    let read = std::io::stdin().read_line(&mut typed);
    read.map_err(|error| refused(&error.to_string()))?;
    if typed.trim() == word {
        Ok(())
    } else {
        Err(Failure::Failed("not confirmed: nothing was deleted".to_owned()))
    }
}
