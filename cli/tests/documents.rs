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
