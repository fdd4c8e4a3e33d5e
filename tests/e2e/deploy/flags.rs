//! Flags and variables: each that a file of `deploy/` gives to one of our programs is one that it takes.

use std::collections::BTreeSet;
use std::process::Command;

use clap::CommandFactory as _;

use super::{files, process, starts};

/// Commands of `gitdoor` that the steps of the README may use.
const COMMANDS: [&[&str]; 4] = [&["certs"], &["run", "list"], &["run", "register"], &["run", "revoke"]];

/// The words of a text that begin like this, as far as a flag or a variable goes.
fn words<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = String> + 'a {
    let starts = text.match_indices(begin).map(|(place, _)| place);
    let whole = starts.filter(|place| {
        let before = text.get(..*place).and_then(|before| before.chars().next_back());
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    });
    whole.map(move |place| {
        let rest = text.get(place + begin.len()..).unwrap();
        let name = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).next().unwrap();
        format!("{begin}{name}")
    })
}

/// The flags of the programs, and their variables.
fn known() -> (BTreeSet<String>, BTreeSet<String>) {
    let commands = [gitdoor_control::config::Config::command(), gitdoor_dataplane::config::Args::command()];
    let arguments: Vec<_> = commands.iter().flat_map(clap::Command::get_arguments).collect();
    let mut flags: BTreeSet<_> =
        arguments.iter().filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
    let mut variables: BTreeSet<_> =
        arguments.iter().filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned())).collect();
    for command in COMMANDS {
        let output = Command::new(process::program("gitdoor")).args(command).arg("--help").output().unwrap();
        assert!(output.status.success(), "{command:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        flags.extend(words(&help, "--"));
        variables.extend(words(&help, "GITDOOR_"));
    }
    (flags, variables)
}

/// The commands of a text that are for our programs, each in one line.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim().trim_start_matches("sudo ").to_owned());
    let ours = |line: &String| {
        let first = line.split(' ').next().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        ["gitdoor", "gitdoor-control", "gitdoor-dataplane"].contains(&first.as_str())
    };
    lines.filter(ours).collect()
}

#[test]
fn every_variable_is_one_of_a_program() {
    let (_, known) = known();
    let mut seen = BTreeSet::new();
    for (place, text) in files::all() {
        // Without a name behind it, it is a text about all of them.
        for variable in words(&text, "GITDOOR_").filter(|variable| variable.len() > "GITDOOR_".len()) {
            assert!(known.contains(&variable), "deploy/{place}: {variable}");
            seen.insert(variable);
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
}

#[test]
fn every_secret_that_a_container_writes_to_a_file_is_given_by_a_variable_of_the_data_plane() {
    let (_, known) = known();
    let text = files::read("cloudflare/src/container.js");
    let (_, list) = text.split_once("const FILES = [\n").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let secrets: Vec<_> =
        list.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split('"').next()).collect();
    assert!(secrets.contains(&"CONTROL_TLS_KEY"), "{secrets:?}");
    for secret in secrets {
        assert!(known.contains(&format!("GITDOOR_{secret}")), "{secret}");
        assert!(files::read("cloudflare/wrangler.jsonc").contains(&format!("secret put {secret} ")), "{secret}");
    }
}

#[test]
fn every_flag_of_a_command_is_one_of_the_programs() {
    let (known, _) = known();
    let started = starts::all().into_iter().flat_map(|start| start.arguments);
    let read = files::all().into_iter().flat_map(|(_, text)| commands(&text));
    let flags: Vec<_> = started.chain(read).flat_map(|text| words(&text, "--").collect::<Vec<_>>()).collect();
    assert!(flags.len() > 5, "{flags:?}");
    for flag in flags {
        assert!(known.contains(&flag), "{flag}");
    }
}

#[test]
fn each_program_takes_the_arguments_and_variables_that_it_is_started_with() {
    for start in starts::all() {
        let command = match start.program.as_str() {
            "gitdoor-control" => gitdoor_control::config::Config::command(),
            "gitdoor-dataplane" => gitdoor_dataplane::config::Args::command(),
            other => panic!("{other}"),
        };
        let taken: BTreeSet<_> =
            command.get_arguments().filter_map(|argument| argument.get_env()?.to_str()).collect();
        for variable in start.variables.keys() {
            assert!(taken.contains(variable.as_str()), "{}: {variable}", start.program);
        }
    }
}
