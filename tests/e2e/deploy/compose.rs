//! The compose file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Start;
use super::files::{FOLDER, document, read, texts};

/// How the compose file starts the programs.
pub(super) fn starts() -> Vec<Start> {
    ["control-1", "control-2", "dataplane-1", "dataplane-2"]
        .map(|name| start(&document("compose.yaml")["services"][name]))
        .into()
}

fn start(service: &Value) -> Start {
    let mut command = texts(&service["command"]).into_iter();
    let variables = service["environment"].as_object().unwrap().iter();
    Start {
        program: command.next().unwrap(),
        arguments: command.collect(),
        variables: variables.map(|(name, value)| (name.clone(), given(value.as_str().unwrap()))).collect(),
        grace: humantime::parse_duration(service["stop_grace_period"].as_str().unwrap()).unwrap(),
    }
}

/// A value; one that whoever starts it has to give is the example's of README.md.
fn given(value: &str) -> String {
    let Some(named) = value.strip_prefix("${") else { return value.to_owned() };
    let (name, _) = named.split_once(":?").unwrap();
    let example = format!("{name}=");
    let readme = read("README.md");
    let line = readme.lines().find_map(|line| line.trim().strip_prefix(&example));
    line.unwrap_or_else(|| panic!("deploy/README.md says nothing of {name}")).to_owned()
}

fn services() -> BTreeMap<String, Value> {
    serde_json::from_value(document("compose.yaml")["services"].clone()).unwrap()
}

#[test]
fn no_service_is_root_or_may_become_it() {
    for (name, service) in services() {
        let (user, _) = service["user"].as_str().unwrap().split_once(':').unwrap();
        assert!(user.parse::<u32>().unwrap() > 0, "{name}");
        assert_eq!(texts(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(texts(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
        assert_eq!(service["read_only"], true, "{name}");
    }
}

#[test]
fn every_image_is_pinned_by_its_version() {
    for (name, service) in services() {
        let (_, tag) = service["image"].as_str().unwrap().rsplit_once(':').unwrap();
        assert!(tag.contains(|c: char| c.is_ascii_digit()) && tag.contains('.'), "{name}: {tag}");
    }
}

#[test]
fn what_is_mounted_is_in_the_tree_or_a_volume_or_made_by_the_readme() {
    let file = document("compose.yaml");
    let readme = read("README.md");
    let there = |path: &str| {
        // The secrets are made; everything else is here.
        let known = path.strip_prefix("./compose/").filter(|path| path.starts_with("secrets/"));
        known.map_or_else(|| Path::new(FOLDER).join(path).exists(), |made| readme.contains(made))
    };
    for (name, service) in services() {
        for volume in texts(&service["volumes"]) {
            let (from, _) = volume.split_once(':').unwrap();
            let known = if from.starts_with('.') { there(from) } else { !file["volumes"][from].is_null() };
            assert!(known, "{name}: {volume}");
        }
        for secret in texts(&service["secrets"]) {
            let path = file["secrets"][&secret]["file"].as_str();
            assert!(path.is_some_and(there), "{name}: {secret}");
        }
        for network in texts(&service["networks"]) {
            assert!(!file["networks"][&network].is_null(), "{name}: {network}");
        }
    }
}

#[test]
fn only_the_door_is_reached_from_other_machines() {
    for (name, service) in services() {
        for port in texts(&service["ports"]) {
            assert!(name == "balancer" || port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
    }
}

#[test]
fn the_balancer_and_prometheus_know_every_service_by_its_port() {
    let balancer = read("compose/haproxy.cfg");
    let prometheus = document("compose/prometheus.yml")["scrape_configs"].to_string();
    for (name, service) in
        services().iter().filter(|(_, service)| service["image"].as_str().unwrap().starts_with("gitdoor:"))
    {
        let start = start(service);
        let port = |variable: &str| start.variable(variable).rsplit_once(':').unwrap().1.to_owned();
        let admin = port("GITDOOR_ADMIN_LISTEN");
        assert!(prometheus.contains(&format!("\"{name}:{admin}\"")), "{name}");
        if start.program == "gitdoor-dataplane" {
            let line = format!("\n    server {name} {name}:{}\n", port("GITDOOR_LISTEN"));
            assert!(balancer.contains(&line) && balancer.contains(&format!("check port {admin} ")), "{name}");
        }
    }
}

#[tokio::test]
async fn the_prometheus_of_compose_takes_its_configuration() {
    let configuration = format!("{FOLDER}/compose/prometheus.yml");
    gitdoor_tests::prometheus::promtool(&["check", "config", "--syntax-only", &configuration], "").await;
}
