//! The documents keep up with the code.

mod links;

use std::fs;
use std::path::{Path, PathBuf};

use gitdoor_tests::flags;

/// The folder of the sources.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_flag_of_every_program_is_documented_as_its_help_says() {
    let path = Path::new(ROOT).join("docs/configure.md");
    if std::env::var_os("GITDOOR_WRITE_DOCS").is_some() {
        fs::write(&path, flags::page()).unwrap();
    }
    let (kept, made) = (fs::read_to_string(&path).unwrap_or_default(), flags::page());
    let differs = made.lines().zip(kept.lines().chain(std::iter::repeat(""))).find(|(made, kept)| made != kept);
    assert!(
        kept == made,
        "docs/configure.md is not what the programs say; write it anew with GITDOOR_WRITE_DOCS=1: {differs:?}"
    );
}

#[test]
fn every_threat_names_tests_that_there_are() {
    let document = include_str!("../../docs/security.md");
    let (_, table) = document.split_once("\n| threat | ").unwrap();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with("| ")).collect();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test holds: {row}");
        for test in named {
            assert!(is_test(test), "docs/security.md names {test}, which is no test: {row}");
        }
    }
}

#[test]
fn a_name_is_a_test_only_where_its_module_has_it_as_one() {
    for test in [
        "e2e::documents::a_name_is_a_test_only_where_its_module_has_it_as_one",
        "control::gate::tests::held::an_authorization_is_of_no_use_to_another_data_plane",
        "control::ticket::tests::a_ticket_with_any_bit_turned_is_refused",
        "control::trust::roles::a_refusal_says_which_role_is_needed",
        "e2e::workspace::without_files_git_and_gh_work_as_well",
        "dataplane::git::receive_pack::tests::section::no_bytes_make_it_panic",
    ] {
        assert!(is_test(test), "{test}");
    }
    for test in [
        "e2e::documents::is_test",
        "e2e::documents::there_is_no_such_test",
        "e2e::push::a_name_is_a_test_only_where_its_module_has_it_as_one",
        "nowhere::a_ticket_with_any_bit_turned_is_refused",
        "a_ticket_with_any_bit_turned_is_refused",
    ] {
        assert!(!is_test(test), "{test}");
    }
}

/// Whether `crate::module::name` is a test: in the module's file there is a function of that name with a test's attribute,
/// or both versions of gh run it.
fn is_test(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split("::").collect();
    let Some(name) = parts.pop().filter(|_| parts.len() > 1) else { return false };
    let package = parts.remove(0);
    files(package, &parts).iter().filter_map(|file| fs::read_to_string(file).ok()).any(|text| has(&text, name))
}

/// Where a module may be: a file of its own, or the file around it for one that is called `tests`.
fn files(package: &str, modules: &[&str]) -> Vec<PathBuf> {
    let folders: &[&str] = if package == "e2e" { &["tests/e2e"] } else { &["src", "tests"] };
    let roots = folders.iter().map(|folder| match package {
        "e2e" => Path::new(ROOT).join(folder),
        _ => Path::new(ROOT).join(package).join(folder),
    });
    let around = modules.split_last().filter(|(last, _)| **last == "tests").map(|(_, around)| around);
    let spellings: Vec<String> = std::iter::once(modules).chain(around).map(|modules| modules.join("/")).collect();
    let found = roots.flat_map(|root| {
        let names = spellings.iter().flat_map(|name| [format!("{name}.rs"), format!("{name}/main.rs")]);
        names.map(|name| root.join(name)).collect::<Vec<_>>()
    });
    found.collect()
}

fn has(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.iter().enumerate().any(|(number, line)| {
        let is_it = line.contains(&format!("fn {name}("));
        let mut above = lines[..number].iter().rev().take_while(|line| line.starts_with("#["));
        is_it && above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    });
    let by_gh = text.split_once("by_both_gh![").and_then(|(_, rest)| rest.split_once(']'));
    declared || by_gh.is_some_and(|(names, _)| names.split(',').any(|listed| listed.trim() == name))
}
