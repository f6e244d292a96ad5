//! Reads requests for help or the version, and unknown names.

use std::iter::once;

use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, SubCommandInfo};
use cairn_server::config::{EDITS_MAX, closest};

use crate::commands::usage::{HELP, PROGRAM};

/// The option of all commands that talk to a server.
const ENDPOINT: &str = "--endpoint";

/// The option of commands that read a secret from a file.
const SECRET_FILE: &str = "--secret-file";
/// The beginning of options with a secret itself, as in `--secret`, `--secret-key` and `--secret=value`.
const SECRET: &str = "--secret";

/// Words for the same thing, of which each noun has one. The first one of a group that a noun has is meant.
const SYNONYMS: [&[&str]; 3] = [&["list", "ls"], &["show", "stat", "get"], &["delete", "rm", "remove"]];

/// The request of a command line: the version, help, or a command.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Requested {
    /// The version.
    Version,
    /// The help of a command: its words after the program's name.
    Help(Vec<&'static str>),
    /// A command, whose arguments argh checks.
    Command,
}

/// Returns the command of a noun that a word means: its own name, or a synonym that is no other command's name.
pub(super) fn command_of<'i>(info: &'i CommandInfoWithArgs, word: &str) -> Option<&'i SubCommandInfo> {
    let named = |name: &str| info.commands.iter().find(|command| command.name == name);
    named(word).or_else(|| {
        let group = SYNONYMS.iter().find(|group| group.contains(&word))?;
        group.iter().find_map(|name| named(name))
    })
}

/// Returns the arguments as argh reads them: the value of an option is a word of its own, a synonym of a command is its
/// name, and `--endpoint`, which may come before the command, comes after it.
pub(super) fn normalized<'a>(mut info: CommandInfoWithArgs, arguments: &[&'a str]) -> Vec<&'a str> {
    let (mut normal, mut before_command) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            normal.append(&mut before_command);
            normal.push(argument);
            normal.extend(rest);
            return normal;
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (argument, None),
        };
        let is_early = name == ENDPOINT && !info.commands.is_empty();
        if is_early || matches!(option_kind(&info, name), Some(FlagInfoKind::Option { .. })) {
            let place = if is_early { &mut before_command } else { &mut normal };
            place.push(name);
            place.extend(value.or_else(|| rest.next()));
            continue;
        }
        let Some(command) = command_of(&info, argument) else {
            normal.push(argument);
            continue;
        };
        normal.push(command.name);
        info = command.command.clone();
    }
    normal.extend(before_command);
    normal
}

/// Returns what a command line requests. `help`, `-h`, `--help`, `-V` and `--version` are accepted everywhere, but the word
/// `help` is a name if it is not the only argument of a command.
///
/// # Errors
/// An unknown command or option: a message with the most similar one. A noun without a command: a message with its commands.
pub(super) fn requested(mut info: CommandInfoWithArgs, arguments: &[&str]) -> Result<Requested, String> {
    let mut words = Vec::new();
    let mut wants_help = false;
    let mut is_first_argument = true;
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        match argument {
            "--" => break,
            "-V" | "--version" => return Ok(Requested::Version),
            "-h" | HELP => wants_help = true,
            option if option.starts_with('-') && option != "-" => {
                match option_kind(&info, option) {
                    Some(FlagInfoKind::Option { .. }) => drop(rest.next()),
                    Some(FlagInfoKind::Switch) => {}
                    None => return Err(unknown_option(&words, &info, option)),
                }
                is_first_argument = false;
            }
            word if !info.commands.is_empty() => {
                if word == "help" {
                    wants_help = true;
                    continue;
                }
                if word == "version" && words.is_empty() {
                    return Ok(Requested::Version);
                }
                match info.commands.iter().find(|command| command.name == word) {
                    Some(command) => {
                        words.push(command.name);
                        info = command.command.clone();
                    }
                    None => return Err(unknown_command(&words, &info, word)),
                }
            }
            "help" if is_first_argument && rest.len() == 0 => wants_help = true,
            _ => is_first_argument = false,
        }
    }
    if wants_help {
        return Ok(Requested::Help(words));
    }
    if !words.is_empty() && !info.commands.is_empty() {
        return Err(format!("`{}` needs one of its commands: {}", full_name(&words), names(&info)));
    }
    Ok(Requested::Command)
}

/// Puts the arguments that are no options after `--` if one of them is a lone dash, because argh parses that as an option.
pub(super) fn with_dash_last<'a>(mut info: CommandInfoWithArgs, arguments: &[&'a str]) -> Vec<&'a str> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        }
        if let Some(command) = info.commands.iter().find(|command| command.name == argument) {
            info = command.command.clone();
            first.push(argument);
        } else if argument.starts_with('-') && argument != "-" {
            first.push(argument);
            if let Some(FlagInfoKind::Option { .. }) = option_kind(&info, argument) {
                first.extend(rest.next());
            }
        } else {
            last.push(argument);
        }
    }
    if !last.contains(&"-") {
        return arguments.to_vec();
    }
    first.into_iter().chain(["--"]).chain(last).chain(rest).collect()
}

/// Returns of which kind an option of a command is. `None` if the command does not have it.
pub(super) fn option_kind<'i>(info: &'i CommandInfoWithArgs, written: &str) -> Option<&'i FlagInfoKind<'i>> {
    info.flags.iter().find(|flag| is_option(flag, written)).map(|flag| &flag.kind)
}

fn is_option(flag: &FlagInfo<'_>, written: &str) -> bool {
    let is_short = || {
        written.strip_prefix('-').is_some_and(|short| flag.short.is_some_and(|own| short == own.to_string()))
    };
    flag.long == written || is_short()
}

/// Returns a command with the program's name.
fn full_name(words: &[&str]) -> String {
    once(&PROGRAM).chain(words).copied().collect::<Vec<_>>().join(" ")
}

fn unknown_command(words: &[&str], info: &CommandInfoWithArgs, word: &str) -> String {
    let name = full_name(words);
    let known = info.commands.iter().map(|command| command.name.to_owned());
    match closest(word, known, EDITS_MAX) {
        Some(meant) => format!("`{name}` has no command {word}; did you mean `{name} {meant}`?"),
        None => format!("`{name}` has no command {word}; its commands are {}", names(info)),
    }
}

/// Returns the names of the commands of a noun.
fn names(info: &CommandInfoWithArgs) -> String {
    info.commands.iter().map(|command| command.name).collect::<Vec<_>>().join(", ")
}

fn unknown_option(words: &[&str], info: &CommandInfoWithArgs, option: &str) -> String {
    let name = full_name(words);
    // Its value may be a secret, which is not repeated.
    if option.starts_with(SECRET) && option_kind(info, SECRET_FILE).is_some() {
        return format!(
            "`{name}` takes no secret on the command line, where other users of this machine can see it; \
             {SECRET_FILE} names a file that contains it, or - for standard input"
        );
    }
    let known = || info.flags.iter().map(|flag| flag.long).chain([HELP, "--version"]).map(str::to_owned);
    match closest(option, known(), EDITS_MAX) {
        Some(meant) => format!("`{name}` has no option {option}; did you mean {meant}?"),
        None => format!("`{name}` has no option {option}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cairn;
    use argh::ArgsInfo;

    #[test]
    fn help_and_version_are_requested_everywhere() {
        let help = |words: &[&'static str]| Ok(Requested::Help(words.to_vec()));
        for (arguments, expected) in [
            (&["help"][..], help(&[])),
            (&["-h"], help(&[])),
            (&["help", "bucket", "create"], help(&["bucket", "create"])),
            (&["bucket", "help"], help(&["bucket"])),
            (&["bucket", "help", "show"], help(&["bucket", "show"])),
            (&["bucket", "show", "-h"], help(&["bucket", "show"])),
            (&["bucket", "show", "b", "--help"], help(&["bucket", "show"])),
            (&["status", "help"], help(&["status"])),
            (&["bucket", "show", "help"], help(&["bucket", "show"])),
            (&["-V"], Ok(Requested::Version)),
            (&["version"], Ok(Requested::Version)),
            (&["bucket", "show", "b", "--version"], Ok(Requested::Version)),
            (&["serve", "-V"], Ok(Requested::Version)),
            (&["bucket", "show", "--", "help"], Ok(Requested::Command)),
            (&["bucket", "show", "--", "-h"], Ok(Requested::Command)),
            (&["bucket", "create", "help", "--object-lock"], Ok(Requested::Command)),
            (&["service-account", "create", "a", "--description", "-V"], Ok(Requested::Command)),
            (&["policy", "create", "-"], Ok(Requested::Command)),
            (&[], Ok(Requested::Command)),
        ] {
            assert_eq!(requested(Cairn::get_args_info(), arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn options_may_be_written_in_the_usual_ways() {
        let status = ["status", "--endpoint", "u=v", "--json"];
        let after = ["status", "--json", "--endpoint", "u=v"];
        for (arguments, normal) in [
            (&["status", "--endpoint", "u=v", "--json"][..], &status[..]),
            (&["status", "--endpoint=u=v", "--json"], &status),
            (&["--endpoint", "u=v", "status", "--json"], &after),
            (&["--endpoint=u=v", "status", "--json"], &after),
            (&["bucket", "--endpoint=u", "list"], &["bucket", "list", "--endpoint", "u"]),
            (&["audit", "list", "--limit=5"], &["audit", "list", "--limit", "5"]),
            (
                &["policy", "create", "p", "--description", "--a=b"],
                &["policy", "create", "p", "--description", "--a=b"],
            ),
            (
                &["--endpoint=u", "object", "get", "b", "--", "--k=v"],
                &["object", "get", "b", "--endpoint", "u", "--", "--k=v"],
            ),
            (&["bucket", "show", "b", "--json=1"], &["bucket", "show", "b", "--json=1"]),
            (&["bucket", "ls"], &["bucket", "list"]),
            (&["object", "list", "list"], &["object", "ls", "list"]),
            (&["object", "show", "b/k"], &["object", "stat", "b/k"]),
            (&["object", "get", "b/k"], &["object", "get", "b/k"]),
            (&["object", "delete", "b/k"], &["object", "rm", "b/k"]),
            (&["object", "remove", "b/k"], &["object", "rm", "b/k"]),
            (&["bucket", "get", "rm"], &["bucket", "show", "rm"]),
            (&["bucket", "rm", "b"], &["bucket", "delete", "b"]),
            (&["quota", "get", "b"], &["quota", "show", "b"]),
            (
                &["service-account", "credential", "rm", "a", "c"],
                &["service-account", "credential", "delete", "a", "c"],
            ),
            (&["ls"], &["ls"]),
            (&["--endpoint"], &["--endpoint"]),
        ] {
            assert_eq!(normalized(Cairn::get_args_info(), arguments), normal, "{arguments:?}");
        }
    }

    #[test]
    fn arguments_keep_their_order_around_a_dash() {
        for (arguments, normal) in [
            (
                &["object", "put", "-", "b/k", "--json"][..],
                &["object", "put", "--json", "--", "-", "b/k"][..],
            ),
            (&["object", "get", "b/k", "-"], &["object", "get", "--", "b/k", "-"]),
            (&["object", "put", "-", "--", "--k"], &["object", "put", "--", "-", "--k"]),
            (&["share", "create", "b/k", "--password", "-"], &["share", "create", "b/k", "--password", "-"]),
            (&["policy", "create", "--", "-"], &["policy", "create", "--", "-"]),
            (&["bucket", "list", "--json"], &["bucket", "list", "--json"]),
        ] {
            assert_eq!(with_dash_last(Cairn::get_args_info(), arguments), normal, "{arguments:?}");
        }
    }

    #[test]
    fn a_secret_on_the_command_line_is_refused_and_not_repeated() {
        for secret in
            [&["--secret", "hush"][..], &["--secret=hush"], &["--secret-key", "hush"], &["--secret-key=hush"]]
        {
            for command in [["service-account", "create", "a"], ["service-account", "rotate", "a"]] {
                let arguments = [&command[..], &["--access-key", "k"], secret].concat();
                let error = requested(Cairn::get_args_info(), &arguments).expect_err("refused");
                assert!(error.contains("--secret-file") && !error.contains("hush"), "{error}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_most_similar_one() {
        for (arguments, said) in [
            (&["buckt"][..], "did you mean `cairn bucket`?"),
            (&["bucket", "lst"], "did you mean `cairn bucket list`?"),
            (
                &["service-account", "credential", "enabel"],
                "did you mean `cairn service-account credential enable`?",
            ),
            (&["bucket", "xyzzy"], "its commands are create, list"),
            (&["bucket"], "`cairn bucket` needs one of its commands: create, list"),
            (&["bucket", "version"], "`cairn bucket versioning`"),
            (
                &["bucket", "show", "b", "--jsn"],
                "`cairn bucket show` has no option --jsn; did you mean --json?",
            ),
            (&["serve", "--data-dri", "x"], "did you mean --data-dir?"),
            (&["bucket", "show", "b", "--json=1"], "did you mean --json?"),
            (&["bucket", "show", "b", "--xyzzyxyzzy"], "has no option --xyzzyxyzzy"),
        ] {
            let error = requested(Cairn::get_args_info(), arguments).expect_err("unknown");
            assert!(error.contains(said), "{error}");
        }
    }
}
