//! The dashboards as they are in the tree: that each can be loaded anywhere, says what it shows, and misses no metric.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const BOARDS: [(&str, &str); 3] = [
    ("overview.json", include_str!("../../../dashboards/overview.json")),
    ("dataplane.json", include_str!("../../../dashboards/dataplane.json")),
    ("control.json", include_str!("../../../dashboards/control.json")),
];
const RULES: &str = include_str!("../../../dashboards/rules.yml");
const RULES_TEST: &str = include_str!("../../../dashboards/rules_test.yml");
const RUNBOOKS: &str = include_str!("../../../docs/runbooks.md");
const METRICS: &str = include_str!("../../../docs/metrics.md");

fn boards() -> impl Iterator<Item = (&'static str, Value)> {
    BOARDS.into_iter().map(|(name, text)| (name, serde_json::from_str(text).unwrap()))
}

/// Every panel that is no heading.
fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    board["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row")
}

fn targets(panel: &Value) -> impl Iterator<Item = &str> {
    panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap())
}

/// The expressions of all panels with their variables replaced as Grafana does, each with its place.
pub(super) fn expressions() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, board) in boards() {
        for panel in panels(&board) {
            for expression in targets(panel) {
                let replaced = expression.replace("$__rate_interval", "10s").replace("$__range", "1m");
                let replaced = replaced.replace("$instance", ".*");
                assert!(!replaced.contains('$'), "{name}: a variable that is not known here: {replaced}");
                all.insert(replaced, format!("{name}, {}", panel["title"]));
            }
        }
    }
    all
}

/// What `docs/metrics.md` says that there is: of each metric its type and its labels.
fn documented() -> BTreeMap<&'static str, (&'static str, BTreeSet<&'static str>)> {
    let rows = METRICS.lines().filter(|line| line.starts_with("| `gitdoor_"));
    let rows = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    rows.map(|row| {
        let labels = row[3].split(", ").map(|label| label.trim_matches('`'));
        (row[1].trim_matches('`'), (row[2], labels.filter(|label| !label.is_empty()).collect()))
    })
    .collect()
}

/// Asserts that each metric that a program shows is documented, with its type and just its labels.
pub(super) fn are_documented(shown: &str) {
    let documented = documented();
    assert!(documented.len() > 30, "{documented:?}");
    let mut now = None;
    for line in shown.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let known = documented.get(name);
            assert!(known.is_some(), "docs/metrics.md does not have {name}");
            let (known, labels) = known.unwrap();
            assert_eq!(*known, kind, "docs/metrics.md: the type of {name}");
            now = Some((name, labels));
        } else if let (Some((name, labels)), Some((_, rest))) = (now, line.split_once('{')) {
            let (pairs, _) = rest.split_once('}').unwrap();
            let here = pairs.split(',').map(|pair| pair.split_once('=').unwrap().0);
            let here: BTreeSet<_> = here.filter(|label| *label != "le").collect();
            assert_eq!(&here, labels, "docs/metrics.md: the labels of {name}");
        }
    }
}

#[test]
fn a_dashboard_can_be_loaded_anywhere_and_every_panel_says_what_to_do() {
    for (name, board) in boards() {
        assert!(board["schemaVersion"].as_u64() >= Some(41) && board["uid"].is_null() && board["id"].is_null());
        let variables = board["templating"]["list"].as_array().unwrap();
        assert_eq!((&variables[0]["name"], &variables[0]["type"]), (&"datasource".into(), &"datasource".into()));
        assert_eq!(variables[0]["query"], "prometheus");
        let mut ids = BTreeSet::new();
        for panel in panels(&board) {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {title}: its id is another's");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}: {title}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{name}: {title}: no unit");
            let description = panel["description"].as_str().unwrap();
            assert!(description.len() > 40 && description.contains(". "), "{name}: {title}: {description}");
            for target in panel["targets"].as_array().unwrap() {
                assert!(!target["legendFormat"].as_str().unwrap().is_empty(), "{name}: {title}: no legend");
            }
            for expression in targets(panel).filter(|expression| expression.contains("rate(")) {
                assert!(expression.contains("[$__rate_interval]"), "{name}: {title}: {expression}");
            }
        }
    }
}

#[test]
fn no_panel_lies_upon_another() {
    for (name, board) in boards() {
        let mut taken = BTreeSet::new();
        for panel in board["panels"].as_array().unwrap() {
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
            assert!(x + w <= 24, "{name}: {}", panel["title"]);
            for place in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (row, column))) {
                assert!(taken.insert(place), "{name}: {}", panel["title"]);
            }
        }
    }
}

#[test]
fn every_metric_is_in_a_panel() {
    let expressions: String = expressions().into_keys().collect::<Vec<_>>().join("\n");
    let metrics = METRICS.lines().filter_map(|line| line.strip_prefix("| `gitdoor_")?.split_once('`'));
    let names: Vec<_> = metrics.map(|(name, _)| format!("gitdoor_{name}")).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(expressions.contains(&name), "{name}");
    }
}

#[test]
fn every_alert_has_a_page_and_is_seen_to_fire_and_not_to() {
    let alerts: Vec<_> = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in &alerts {
        let (_, rule) = RULES.split_once(&format!("- alert: {alert}\n")).unwrap();
        let rule = rule.split("- alert: ").next().unwrap();
        let page = format!("/docs/runbooks.md#{}\n", alert.to_lowercase());
        assert!(rule.contains(&page), "{alert}: its runbook_url ends with {page}");
        for part in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(part), "{alert}: no {part}");
        }
        assert_eq!(RUNBOOKS.matches(&format!("\n## {alert}\n")).count(), 1, "docs/runbooks.md: {alert}");
        let name = format!("alertname=\"{alert}\"");
        let checks = RULES_TEST.split(&name).skip(1);
        let samples: Vec<_> =
            checks.map(|check| check.split("exp_samples: ").nth(1).unwrap().starts_with("[]")).collect();
        assert!(samples.contains(&true) && samples.contains(&false), "rules_test.yml: {alert}: {samples:?}");
    }
    assert_eq!(RUNBOOKS.matches("\n## ").count(), alerts.len(), "a page without an alert");
}
