//! The real programs, started exactly as the units, the compose file and the manifests start them.

use super::ground::Ground;
use super::{Start, compose, files, kubernetes, units};

/// Every start of every form.
pub(super) fn all() -> Vec<Start> {
    [units::starts(), compose::starts(), kubernetes::starts()].concat()
}

#[test]
fn every_control_is_called_by_a_name_in_its_certificate_and_at_its_port() {
    let readme = files::read("README.md");
    for starts in [units::starts(), compose::starts(), kubernetes::starts()] {
        let gate = starts.iter().find_map(|start| start.variables.get("GITDOOR_GATE_LISTEN")).unwrap();
        for control in starts.iter().filter_map(|start| start.variables.get("GITDOOR_CONTROL")) {
            for url in control.split(',') {
                let (host, port) = url.strip_prefix("https://").unwrap().split_once(':').unwrap();
                assert!(readme.contains(&format!("--control-host {host} ")), "{host}");
                assert!(gate.ends_with(&format!(":{port}")), "{url}: {gate}");
            }
        }
    }
}

#[tokio::test]
async fn the_units_serve_a_clone_and_end_well() {
    Ground::new().serve(units::starts()).await;
}

#[tokio::test]
async fn the_units_serve_a_clone_with_a_store_in_postgresql() {
    let mut starts = units::starts();
    units::move_to_postgres(&mut starts);
    Ground::new().serve(starts).await;
}

#[tokio::test]
async fn the_services_of_compose_serve_a_clone_and_end_well() {
    Ground::new().serve(compose::starts()).await;
}

#[tokio::test]
async fn the_pods_serve_a_clone_and_end_well() {
    // A control and a data plane of each, since all pods of a Deployment are the same.
    Ground::new().serve(kubernetes::starts()).await;
}
