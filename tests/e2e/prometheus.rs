//! What operators see: the dashboards and the alerts, held against a real Prometheus that scrapes both planes.

mod boards;
mod load;

use std::collections::BTreeMap;
use std::time::Duration;

use gitdoor_tests::prometheus::{Prometheus, promtool};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::PROGRAM;

/// The folder of the dashboards and rules.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboards");
/// What is shown to operators as the configuration of their Prometheus.
const OPERATE: &str = include_str!("../../docs/operate.md");
/// What they are told to ask it.
const PUSH_SIZES: &str = include_str!("../../docs/push-sizes.md");
/// How long what happened may take to be seen.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

/// What is there as 0 from the start, and must have been more than that, or come back to it.
const MOVED: [&str; 4] = [
    "gitdoor_control_live_runs{identity=\"write\", bound=\"yes\"} > 0",
    "gitdoor_dataplane_upstream_connections{pool=\"shared\"} > 0",
    "gitdoor_dataplane_upstream_connections{pool=\"push\"} == 1",
    "gitdoor_dataplane_upstream_connections{pool=\"push\"} == 0 \
     and max_over_time(gitdoor_dataplane_upstream_connections{pool=\"push\"}[1m]) > 0",
];

/// The documented configuration, made to scrape these places twice a second.
fn configuration(controls: &[String], dataplanes: &[String]) -> String {
    let (_, text) = OPERATE.split_once("```yaml\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let swaps = [
        ("15s", "500ms"),
        ("/etc/prometheus/gitdoor", FOLDER),
        ("control-1.example.com:9101, control-2.example.com:9101", &controls.join(", ")),
        ("door-1.example.com:9102, door-2.example.com:9102", &dataplanes.join(", ")),
    ];
    swaps.iter().fold(text.to_owned(), |text, (documented, here)| {
        assert!(text.contains(documented), "docs/operate.md: {documented}");
        text.replace(documented, here)
    })
}

#[tokio::test]
async fn the_rules_and_the_documented_configuration_are_what_prometheus_takes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prometheus.yml");
    std::fs::write(&file, configuration(&["a:1".to_owned()], &["b:2".to_owned()])).unwrap();
    promtool(&["check", "config", file.to_str().unwrap()], "").await;
    promtool(&["check", "rules", &format!("{FOLDER}/rules.yml")], "").await;
    promtool(&["test", "rules", &format!("{FOLDER}/rules_test.yml")], "").await;
}

/// Whether an expression had a value at some time since then; a share of nothing is none.
async fn found(prometheus: &Prometheus, expression: &str, since: f64) -> bool {
    let series = prometheus.between(expression, since, prometheus.now().await).await;
    assert!(series.is_ok(), "{expression}: {series:?}");
    let series = series.unwrap_or_default();
    let values = series.iter().filter_map(|one| one["values"].as_array()).flatten();
    values.filter_map(|pair| pair[1].as_str()).any(|value| value != "NaN")
}

/// What is still missing of these expressions after some time; each has where it is used.
async fn missing(
    prometheus: &Prometheus,
    mut expressions: BTreeMap<String, String>,
    since: f64,
) -> BTreeMap<String, String> {
    let began = Instant::now();
    loop {
        let mut left = BTreeMap::new();
        for (expression, place) in expressions {
            if !found(prometheus, &expression, since).await {
                left.insert(expression, place);
            }
        }
        if left.is_empty() || began.elapsed() > SEEN_WITHIN {
            return left;
        }
        expressions = left;
        sleep(Duration::from_millis(500)).await;
    }
}

/// Every expression of the rules that Prometheus has read, with the name of its rule.
async fn rules(prometheus: &Prometheus) -> BTreeMap<String, String> {
    let answer = prometheus.get("/api/v1/rules").await;
    let groups = answer["data"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    let named = |rule: &Value, field: &str| rule[field].as_str().unwrap().to_owned();
    rules.map(|rule| (named(rule, "query"), named(rule, "name"))).collect()
}

/// Every expression that the documents give, with the place where it is.
fn documented() -> BTreeMap<String, String> {
    let blocks = PUSH_SIZES.split("\n```promql\n").skip(1).filter_map(|rest| rest.split("\n```\n").next());
    let named = blocks.map(|block| (block.to_owned(), "docs/push-sizes.md".to_owned()));
    let documented: BTreeMap<_, _> = named.collect();
    assert_eq!(documented.len(), 3, "{documented:?}");
    documented
}

#[tokio::test]
async fn every_expression_of_the_dashboards_and_rules_finds_what_it_is_for() {
    let mut world = World::builder(PROGRAM).controls(2).dataplanes(2).mutual_tls().start().await;
    let [controls, dataplanes] = ["control", "dataplane"].map(|plane| {
        let places = world.admin_addresses().into_iter().filter(|(name, _)| name.starts_with(plane));
        places.map(|(_, address)| address).collect::<Vec<_>>()
    });
    let folder = world.path().join("prometheus");
    let prometheus = Prometheus::start(&folder, &configuration(&controls, &dataplanes)).await;
    // From before anything was scraped, which is what one of the alerts is for.
    let since = prometheus.now().await - 5.0;
    load::everything(&mut world, &prometheus).await;
    for (_, text) in world.metrics().await {
        promtool(&["check", "metrics"], &text).await;
        boards::are_documented(&text);
    }
    let mut expressions = rules(&prometheus).await;
    assert!(expressions.len() > 10, "{expressions:?}");
    expressions.extend(boards::expressions());
    expressions.extend(documented());
    expressions.extend(MOVED.map(|expression| (expression.to_owned(), "a gauge that moved".to_owned())));
    let missing = missing(&prometheus, expressions, since).await;
    assert!(missing.is_empty(), "these find nothing, though it happened: {missing:#?}");
    let alerts = async || prometheus.get("/api/v1/alerts").await.to_string();
    until("a dead data plane is told of", async || alerts().await.contains("GitdoorDown")).await;
    let alerts = alerts().await;
    assert!(!alerts.contains("error expanding"), "{alerts}");
    drop(prometheus);
    world.finish().await;
}
