//! argh's description of the commands, for completions and the manual page.

use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind};

/// The program's name: the first word of every command.
pub(crate) const PROGRAM: &str = "cairn";

/// A command, or a noun that has commands.
pub(crate) struct Usage {
    /// All its words: `cairn bucket create`.
    pub(crate) words: String,
    /// argh's description.
    pub(crate) info: CommandInfoWithArgs,
}

/// The kind of value that an argument takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    /// None: it is a switch.
    Nothing,
    /// The name of a file.
    File,
    /// The name of a folder.
    Folder,
    /// A value that a shell cannot complete.
    Other,
}

/// Returns the program and all its commands, each before its subcommands.
pub(crate) fn usages(program: CommandInfoWithArgs) -> Vec<Usage> {
    let mut found = Vec::new();
    walk(PROGRAM.to_owned(), program, &mut found);
    found
}

fn walk(words: String, info: CommandInfoWithArgs, found: &mut Vec<Usage>) {
    let below: Vec<_> = info
        .commands
        .iter()
        .map(|command| (format!("{words} {}", command.name), command.command.clone()))
        .collect();
    found.push(Usage { words, info });
    for (words, info) in below {
        walk(words, info, found);
    }
}

impl Usage {
    /// Returns its options except `--help`, which argh does not list.
    pub(crate) fn options(&self) -> impl Iterator<Item = &FlagInfo<'static>> {
        self.info.flags.iter().filter(|flag| !flag.hidden && flag.long != HELP)
    }

    /// Returns the kind of its positional argument that a shell can complete, if it has one.
    pub(crate) fn positional(&self) -> ValueKind {
        let files = self.info.positionals.iter().map(|positional| named(positional.name));
        files.into_iter().find(|takes| *takes != ValueKind::Other).unwrap_or(ValueKind::Other)
    }

    /// Returns the words that its positional argument accepts, if it accepts only those.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &'static str> {
        let names = self.info.positionals.iter().map(|positional| positional.name);
        names.filter(|name| name.contains(OR)).flat_map(|name| name.split(OR))
    }
}

/// Separates the accepted words in the name of an argument.
const OR: char = '|';

/// The option that every command has.
pub(crate) const HELP: &str = "--help";
/// The description of that option.
pub(crate) const HELP_DESCRIPTION: &str = "display usage information";

/// Returns the kind of value that an option takes.
pub(crate) fn takes(option: &FlagInfo<'_>) -> ValueKind {
    match option.kind {
        FlagInfoKind::Switch => ValueKind::Nothing,
        FlagInfoKind::Option { arg_name } => named(arg_name),
    }
}

/// Returns the kind of value of an argument with this name. The whole program uses these names.
fn named(name: &str) -> ValueKind {
    match name {
        "file" => ValueKind::File,
        "folder" => ValueKind::Folder,
        _ => ValueKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cairn;
    use argh::ArgsInfo;

    #[test]
    fn usages_contain_commands_options_and_their_kinds() {
        let usages = usages(Cairn::get_args_info());
        let usage = |words: &str| usages.iter().find(|usage| usage.words == words).expect("a command");
        assert_eq!(usages[0].words, PROGRAM);
        assert!(!usage("cairn bucket").info.commands.is_empty());
        let serve: Vec<_> =
            usage("cairn serve").options().map(|option| (option.long, takes(option))).collect();
        assert!(serve.contains(&("--dev", ValueKind::Nothing)), "{serve:?}");
        assert!(serve.contains(&("--config", ValueKind::File)), "{serve:?}");
        assert!(serve.contains(&("--data-dir", ValueKind::Folder)), "{serve:?}");
        assert_eq!(usage("cairn policy create").positional(), ValueKind::File);
        assert_eq!(usage("cairn bucket create").positional(), ValueKind::Other);
        assert_eq!(usage("cairn bucket create").choices().count(), 0);
        assert_eq!(usage("cairn completions").choices().collect::<Vec<_>>(), ["bash", "zsh", "fish"]);
    }
}
