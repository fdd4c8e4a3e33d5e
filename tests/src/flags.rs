//! `docs/configure.md`: every flag of the three programs, from the declarations that `--help` is made of.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

const HEAD: &str = "\
# Configure

Every flag of the three programs. This page is made from the programs themselves (`CONTRIBUTING.md` says how), so it says what
`--help` says.

Each flag is also an environment variable, and a flag wins over its variable. Where *value* ends in `...` a flag may be repeated, and
the variable's values are separated by commas. A flag without a value is on where its variable is set to anything but `0`, `n`, `no`, `f`,
`false`, `off` or nothing. Secrets are files, never values: a key, a password and a bearer are in no flag and no variable.

A value that does not parse exits with status 2. One that parses and cannot be used (a key that is not there, an occupied port) exits
with 64, names its flag, and has opened no port.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let programs = [
        gitdoor_control::config::Config::command(),
        gitdoor_dataplane::config::Args::command(),
        gitdoor::command(),
    ];
    for program in &programs {
        let name = program.get_name();
        section(&mut page, program, name, 2);
    }
    page
}

/// A command's own flags, then those of the commands below it.
fn section(page: &mut String, command: &Command, name: &str, level: usize) {
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| !is_everywhere(argument)).collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let below: Vec<&Command> = command.get_subcommands().filter(|below| below.get_name() != "help").collect();
    let common = if below.is_empty() || arguments.is_empty() { "" } else { " For each of its commands:" };
    write!(page, "\n{} {name}\n\n{}{common}\n", "#".repeat(level), sentence(&about)).expect("memory");
    if !arguments.is_empty() {
        page.push_str("\n| flag | variable | value | default | what it does |\n| --- | --- | --- | --- | --- |\n");
        for argument in arguments {
            page.push_str(&row(argument));
        }
    }
    for command in below {
        section(page, command, &format!("{name} {}", command.get_name()), level + 1);
    }
}

/// Whether every program has it, and it needs no row.
fn is_everywhere(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "help" | "version")
}

fn row(argument: &Arg) -> String {
    let flag = argument.get_long().map(|long| code(&format!("--{long}"))).unwrap_or_default();
    let variable = argument.get_env().map(|name| code(&name.to_string_lossy())).unwrap_or_default();
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = match defaults.collect::<Vec<_>>().join(",") {
        _ if argument.is_required_set() => "required".to_owned(),
        // Of a flag without a value.
        value if value == "false" => String::new(),
        value if value.is_empty() => value,
        value => code(&value),
    };
    format!("| {flag} | {variable} | {} | {default} | {} |\n", value(argument), words(argument))
}

/// What it takes, as `--help` names it; a choice by its choices.
fn value(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let choices: Vec<_> =
        argument.get_possible_values().iter().map(|choice| choice.get_name().to_owned()).collect();
    let names = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
    let text = if choices.is_empty() { names.collect::<Vec<_>>().join(" ") } else { choices.join("|") };
    // A name that says so itself needs no second set of dots.
    let repeated = matches!(argument.get_action(), ArgAction::Append) && !text.ends_with("...");
    code(&if repeated { format!("{text}...") } else { text })
}

/// The long help where there is one, in one paragraph, and what each choice means.
fn words(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut words: Vec<String> = help.split("\n\n").map(sentence).collect();
    for choice in argument.get_possible_values() {
        if let Some(meaning) = choice.get_help().filter(|_| argument.get_action().takes_values()) {
            let meaning = meaning.to_string();
            words.push(format!("`{}`: {}.", choice.get_name(), escaped(meaning.trim_end_matches('.'))));
        }
    }
    words.join(" ")
}

/// On one line, with an end.
fn sentence(text: &str) -> String {
    let text = escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if text.is_empty() || text.ends_with(['.', '?', '!']) { text } else { format!("{text}.") }
}

/// As a cell of a table takes it.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn code(text: &str) -> String {
    format!("`{}`", escaped(text))
}
