//! The documents keep up with the code.

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
        let mut gitdoor = std::process::Command::new(env!("CARGO_BIN_EXE_gitdoor"));
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
