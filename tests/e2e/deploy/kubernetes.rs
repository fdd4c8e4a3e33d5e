//! The manifests: that each names only what another makes. Whether the API takes them is `tests/run deploy`'s to see.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::Start;
use super::files::{all, document, documents, read, texts};

/// Where there is a kustomization.
const PLACES: [&str; 4] = ["base", "components/autoscaling", "components/prometheus-operator", "overlays/example"];
/// Sessions that a control takes at once; `ARCHITECTURE.md`.
const SESSIONS: u64 = 256;

/// How the manifests start the programs.
pub(super) fn starts() -> Vec<Start> {
    workloads().iter().map(start).collect()
}

fn start(workload: &Value) -> Start {
    let pod = &workload["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let mut command = texts(&container["command"]).into_iter();
    let [grace, sleep] =
        [&pod["terminationGracePeriodSeconds"], &container["lifecycle"]["preStop"]["sleep"]["seconds"]];
    Start {
        program: command.next().unwrap(),
        arguments: command.chain(texts(&container["args"])).collect(),
        variables: variables(container["envFrom"][0]["configMapRef"]["name"].as_str().unwrap()),
        // It hears of its end only after the sleep.
        grace: Duration::from_secs(grace.as_u64().unwrap() - sleep.as_u64().unwrap()),
    }
}

/// What a generated `ConfigMap` holds in the example.
fn variables(name: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for place in ["base", "overlays/example"] {
        let kustomization = document(&format!("kubernetes/{place}/kustomization.yaml"));
        let generators = kustomization["configMapGenerator"].as_array().unwrap().iter();
        let literals = generators.filter(|one| one["name"] == name).flat_map(|one| texts(&one["literals"]));
        all.extend(literals.map(|literal| {
            let (name, value) = literal.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        }));
    }
    assert!(!all.is_empty(), "no ConfigMap {name}");
    all
}

/// Everything that the base makes.
fn objects() -> Vec<Value> {
    texts(&document("kubernetes/base/kustomization.yaml")["resources"])
        .iter()
        .flat_map(|name| documents(&format!("kubernetes/base/{name}")))
        .collect()
}

fn of_kind(kind: &str) -> Vec<Value> {
    let found: Vec<_> = objects().into_iter().filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "no {kind}");
    found
}

fn workloads() -> Vec<Value> {
    of_kind("Deployment")
}

/// The workload whose pods have these labels.
fn selected(labels: &Value) -> Value {
    let labels = labels.as_object().unwrap();
    let workload = workloads().into_iter().find(|workload| {
        let pod = &workload["spec"]["template"]["metadata"]["labels"];
        !labels.is_empty() && labels.iter().all(|(name, value)| &pod[name] == value)
    });
    workload.unwrap_or_else(|| panic!("no pod has {labels:?}"))
}

/// The ports of its pods, by name.
fn ports(workload: &Value) -> BTreeMap<String, u64> {
    let ports = workload["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().unwrap().iter();
    ports.map(|port| (port["name"].as_str().unwrap().to_owned(), port["containerPort"].as_u64().unwrap())).collect()
}

#[test]
fn every_manifest_is_a_resource_of_a_kustomization() {
    let mut named = BTreeSet::new();
    for place in PLACES {
        let kustomization = document(&format!("kubernetes/{place}/kustomization.yaml"));
        named.insert(format!("kubernetes/{place}/kustomization.yaml"));
        for resource in texts(&kustomization["resources"]).iter().chain(&texts(&kustomization["components"])) {
            let known = PLACES.iter().any(|place| resource.strip_prefix("../../") == Some(place));
            if !known {
                named.insert(format!("kubernetes/{place}/{resource}"));
            }
        }
    }
    // Values for a chart, which is no manifest.
    named.insert("kubernetes/components/autoscaling/prometheus-adapter.yaml".to_owned());
    let there = all().into_iter().map(|(name, _)| name).filter(|name| name.starts_with("kubernetes/"));
    assert_eq!(there.collect::<BTreeSet<_>>(), named);
}

#[test]
fn every_selector_finds_pods_and_every_port_is_theirs() {
    for workload in workloads() {
        let spec = &workload["spec"];
        assert_eq!(selected(&spec["selector"]["matchLabels"])["metadata"]["name"], workload["metadata"]["name"]);
        let pod = &spec["template"]["spec"];
        for spread in pod["topologySpreadConstraints"].as_array().unwrap() {
            assert_eq!(spread["labelSelector"], spec["selector"]);
        }
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let port = pod["containers"][0][probe]["httpGet"]["port"].as_str().unwrap();
            assert_eq!(port, "admin", "{probe}");
            assert!(ports(&workload).contains_key(port), "{probe}");
        }
    }
    for service in of_kind("Service") {
        let workload = selected(&service["spec"]["selector"]);
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(ports(&workload).contains_key(port["targetPort"].as_str().unwrap()), "{port}");
        }
    }
    for budget in of_kind("PodDisruptionBudget") {
        selected(&budget["spec"]["selector"]["matchLabels"]);
    }
    for policy in of_kind("NetworkPolicy") {
        let workload = selected(&policy["spec"]["podSelector"]["matchLabels"]);
        for rule in policy["spec"]["ingress"].as_array().unwrap() {
            for port in rule["ports"].as_array().unwrap() {
                assert!(ports(&workload).contains_key(port["port"].as_str().unwrap()), "{port}");
            }
        }
        let sides = ["ingress", "egress"].map(|side| policy["spec"][side].as_array().unwrap().clone()).concat();
        let peers =
            sides.iter().flat_map(|rule| ["from", "to"].map(|side| &rule[side])).filter_map(Value::as_array);
        for peer in peers.flatten().filter(|peer| !peer["podSelector"].is_null()) {
            selected(&peer["podSelector"]["matchLabels"]);
        }
    }
}

#[test]
fn the_ports_are_those_that_the_programs_are_told_to_listen_on() {
    for workload in workloads() {
        let start = start(&workload);
        let listens = start.variables.iter().filter(|(name, _)| name.ends_with("LISTEN"));
        let listens: BTreeSet<u64> =
            listens.map(|(_, address)| address.rsplit_once(':').unwrap().1.parse().unwrap()).collect();
        assert_eq!(listens, ports(&workload).into_values().collect());
    }
}

#[test]
fn data_planes_look_up_every_control() {
    let dataplane = starts().into_iter().find(|start| start.program == "gitdoor-dataplane").unwrap();
    let (host, port) =
        dataplane.variable("GITDOOR_CONTROL").strip_prefix("https://").unwrap().split_once(':').unwrap();
    let gate = of_kind("Service").into_iter().find(|service| service["metadata"]["name"] == host).unwrap();
    assert_eq!(gate["spec"]["clusterIP"], "None");
    assert_eq!(gate["spec"]["ports"][0]["port"].to_string(), port);
    // The door's data planes, as many as there may be, and some more in a rollout.
    let most =
        document("kubernetes/components/autoscaling/horizontalpodautoscaler.yaml")["spec"]["maxReplicas"].clone();
    let threads: u64 = dataplane.variable("GITDOOR_THREADS").parse().unwrap();
    assert!(2 * most.as_u64().unwrap() * threads <= SESSIONS, "a control takes {SESSIONS} sessions");
}

#[test]
fn a_pod_may_nothing_that_it_does_not_need() {
    for workload in workloads() {
        let pod = &workload["spec"]["template"]["spec"];
        assert_eq!(
            (&pod["automountServiceAccountToken"], &pod["enableServiceLinks"]),
            (&false.into(), &false.into())
        );
        let context = &pod["securityContext"];
        assert_eq!(
            (&context["runAsNonRoot"], &context["seccompProfile"]["type"]),
            (&true.into(), &"RuntimeDefault".into())
        );
        for container in pod["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(texts(&context["capabilities"]["drop"]), ["ALL"]);
            let mounts = container["volumeMounts"].as_array().unwrap();
            assert!(mounts.iter().all(|mount| mount["readOnly"] == true), "{mounts:?}");
        }
    }
}

#[test]
fn every_file_that_is_named_is_in_a_secret_that_the_readme_makes() {
    let readme = read("README.md").replace("\\\n", " ");
    let made = |secret: &str, file: &str| {
        let mut lines = readme.lines().filter(|line| line.contains("create secret "));
        let files = match file {
            "tls.crt" | "tls.key" => format!("secret tls {secret} "),
            _ => format!("secret generic {secret} "),
        };
        lines.any(|line| {
            line.contains(&files) && (file.starts_with("tls.") || line.contains(&format!("--from-file={file}=")))
        })
    };
    let mut files = 0;
    for workload in workloads() {
        let pod = &workload["spec"]["template"]["spec"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        for (name, path) in start(&workload).variables.iter().filter(|(_, value)| value.starts_with('/')) {
            let (folder, file) = path.rsplit_once('/').unwrap();
            let mount =
                mounts.iter().find(|mount| mount["mountPath"] == folder).unwrap_or_else(|| panic!("{name}"));
            let volumes = pod["volumes"].as_array().unwrap();
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            let sources = volume["projected"]["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
            let several = sources.iter().map(|source| &source["secret"]["name"]);
            let secrets = several.chain([&volume["secret"]["secretName"]]).filter_map(Value::as_str);
            assert!(
                secrets.into_iter().any(|secret| made(secret, file)),
                "deploy/README.md makes no Secret with {path}"
            );
            files += 1;
        }
    }
    assert!(files > 9, "{files}");
}

#[test]
fn the_autoscaler_goes_by_a_metric_that_there_is() {
    let scaler = document("kubernetes/components/autoscaling/horizontalpodautoscaler.yaml");
    let metric = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"].as_str().unwrap().to_owned();
    let documented = include_str!("../../../docs/metrics.md");
    assert!(documented.contains(&format!("| `{metric}` | gauge |")), "{metric}");
    let rule = document("kubernetes/components/autoscaling/prometheus-adapter.yaml")["rules"]["custom"][0].clone();
    assert_eq!(rule["name"]["as"], metric);
    assert!(rule["seriesQuery"].as_str().unwrap().starts_with(&format!("{metric}{{")));
    let target = scaler["spec"]["scaleTargetRef"]["name"].clone();
    assert!(workloads().iter().any(|workload| workload["metadata"]["name"] == target));
}

#[test]
fn prometheus_knows_the_jobs_by_the_names_that_the_rules_look_for() {
    let monitor = document("kubernetes/components/prometheus-operator/podmonitor.yaml");
    let label = monitor["spec"]["jobLabel"].as_str().unwrap();
    for workload in workloads() {
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        assert!(labels[label].as_str().unwrap().starts_with("gitdoor-"));
        let chosen = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
        assert!(chosen.iter().all(|(name, value)| &labels[name] == value));
        let port = monitor["spec"]["podMetricsEndpoints"][0]["port"].as_str().unwrap();
        assert!(ports(&workload).contains_key(port));
    }
}
