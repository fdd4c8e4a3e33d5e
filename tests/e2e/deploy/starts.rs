//! The real programs, started exactly as the units, the compose file and the manifests start them.

use super::ground::Ground;
use super::{Start, compose, kubernetes, units};

/// Every start of every form.
pub(super) fn all() -> Vec<Start> {
    [units::starts(), compose::starts(), kubernetes::starts()].concat()
}

#[tokio::test]
async fn the_units_serve_a_clone_and_end_well() {
    Ground::new().serve(units::starts()).await;
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
