//! The documents keep up with the code.

use std::process::Command;

use gitdoor_proto::Reason;

#[test]
fn every_reason_is_explained() {
    let document = include_str!("../../docs/refusals.md");
    for reason in Reason::ALL {
        let row = format!("\n| `{}` | ", reason.as_str());
        assert_eq!(document.matches(&row).count(), 1, "docs/refusals.md: {}", reason.as_str());
    }
}

#[test]
fn every_metric_is_explained_with_its_type_and_labels_and_no_other() {
    let document = include_str!("../../docs/metrics.md");
    let sources = [include_str!("../../control/src/metrics.rs"), include_str!("../../dataplane/src/metrics.rs")];
    let mut explained = 0;
    for source in sources {
        let metrics = source.lines().filter_map(|line| {
            let (constant, name) = line.strip_prefix("const ")?.split_once(": &str = \"")?;
            Some((constant, name.strip_suffix("\";")?))
        });
        for (constant, name) in metrics {
            let measured = |kind: &str| source.lines().find(|line| line.contains(&format!(" {kind}!({constant}")));
            let (kind, line) = ["counter", "gauge", "histogram"]
                .into_iter()
                .find_map(|kind| Some((kind, measured(kind)?)))
                .unwrap_or_else(|| panic!("{name} is never measured"));
            let labels: Vec<String> = line
                .split('"')
                .zip(line.split('"').skip(1))
                .filter(|(_, after)| after.trim_start().starts_with("=>"))
                .map(|(label, _)| format!(" `{label}`"))
                .collect();
            let row = format!("\n| `{name}` | {kind} |{} |", labels.join(","));
            assert_eq!(document.matches(&row).count(), 1, "docs/metrics.md: {row}");
            explained += 1;
        }
    }
    assert_eq!(document.matches("\n| `gitdoor_").count(), explained, "a row without a metric");
}

#[test]
fn every_question_is_a_label_that_is_explained() {
    let document = include_str!("../../docs/metrics.md");
    let (_, paragraph) = document.split_once("\n`question` is one of ").unwrap();
    let (paragraph, _) = paragraph.split_once("\n\n").unwrap();
    let intents = include_str!("../../control/src/gate/question.rs").lines().filter_map(|line| {
        let (_, name) = line.trim_start().strip_prefix("Self::")?.split_once(" => \"")?;
        name.strip_suffix("\",")
    });
    let others = include_str!("../../control/src/service/gate.rs").split("metrics::question(\"").skip(1);
    let questions: Vec<_> = intents.chain(others.filter_map(|rest| rest.split('"').next())).collect();
    for question in &questions {
        assert!(paragraph.contains(&format!("`{question}`")), "docs/metrics.md: {question}");
    }
    assert!(questions.contains(&"api_read") && questions.contains(&"bind"), "{questions:?}");
}

#[test]
fn every_variable_of_a_workspace_is_explained() {
    let document = include_str!("../../docs/workspaces.md");
    let folder = tempfile::tempdir().unwrap();
    let bearer = folder.path().join("bearer");
    std::fs::write(&bearer, "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").unwrap();
    let mut names = std::collections::BTreeSet::new();
    for more in [&["--ca", bearer.to_str().unwrap()][..], &["--variables-only", "--repository", "acme/api"]] {
        let mut gitdoor = Command::new(env!("CARGO_BIN_EXE_gitdoor"));
        gitdoor.env_clear().args(["env", "--format=json", "--host=git.example.com", "--bearer-file"]).arg(&bearer);
        let value: serde_json::Value =
            serde_json::from_slice(&gitdoor.args(more).output().unwrap().stdout).unwrap();
        names.extend(value["set"].as_object().unwrap().keys().cloned());
        names.extend(value["unset"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()));
    }
    for name in &names {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let name = if name.ends_with('_') { format!("{name}n") } else { name.to_owned() };
        assert!(document.contains(&format!("`{name}`")), "docs/workspaces.md: {name}");
    }
    assert!(names.contains("SSL_CERT_FILE") && names.contains("GH_TOKEN"), "{names:?}");
}

const RESIDENT: &str = include_str!("../../docs/resident.md");
const A_THREAD: &str = include_str!("../../docs/backends/resident.md");

/// The pages that say how a workspace is made.
const WORKSPACES: [(&str, &str); 8] = [
    ("workspaces.md", include_str!("../../docs/workspaces.md")),
    ("resident.md", RESIDENT),
    ("backends/container.md", include_str!("../../docs/backends/container.md")),
    ("backends/micro-vm.md", include_str!("../../docs/backends/micro-vm.md")),
    ("backends/cloudflare-sandbox.md", include_str!("../../docs/backends/cloudflare-sandbox.md")),
    ("backends/resident.md", A_THREAD),
    ("backends/local.md", include_str!("../../docs/backends/local.md")),
    ("exec.md", include_str!("../../docs/exec.md")),
];

/// Each `gitdoor` in a page: its subcommands, and the flags that it is given.
fn commands(page: &'static str) -> impl Iterator<Item = (Vec<&'static str>, Vec<&'static str>)> {
    page.lines().flat_map(|line| line.split("gitdoor ").skip(1)).map(|rest| {
        let command = rest.split(['|', '`', '&', '>', ';', ')', '\'', '"']).next().unwrap_or_default();
        let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let names = command.split(' ').take_while(is_name).collect();
        let flags = command.split(' ').filter(|word| word.starts_with("--"));
        (names, flags.map(|flag| flag.split('=').next().unwrap_or_default()).collect())
    })
}

#[test]
fn every_flag_in_the_pages_about_workspaces_is_one_of_its_command() {
    for (name, page) in WORKSPACES {
        let mut looked_up = 0;
        for (names, flags) in commands(page).filter(|(_, flags)| !flags.is_empty()) {
            let help = Command::new(env!("CARGO_BIN_EXE_gitdoor")).args(&names).arg("--help").output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            for flag in flags {
                let is_one = help.split_ascii_whitespace().any(|word| word == flag);
                assert!(is_one, "docs/{name}: gitdoor {names:?} has no {flag}");
                looked_up += 1;
            }
        }
        assert!(looked_up > 0, "docs/{name}");
    }
}

#[test]
fn what_the_page_about_a_thread_says_is_part_of_the_recipe_that_is_tested() {
    let (_, block) = A_THREAD.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    for line in block.lines() {
        assert!(RESIDENT.lines().any(|tested| tested == line), "docs/backends/resident.md: {line}");
    }
}
