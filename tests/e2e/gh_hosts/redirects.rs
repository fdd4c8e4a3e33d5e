//! A data plane that passes redirects on: from a hosts file the bearer stays at home; from the environment an old gh
//! carries it to the storage, which is why redirects are followed by default.

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Credential, Gh, Version, newest};
use gitdoor_tests::github::{Canned, Route};
use gitdoor_tests::world::{Run, World};

use super::{EVIL, carriers};
use crate::PROGRAM;

by_both_gh![
    a_redirect_that_is_passed_on_takes_no_bearer_along_from_a_hosts_file,
    a_redirect_that_is_passed_on_takes_the_bearer_of_an_old_gh_along_from_the_environment,
];

const DOWNLOADS: &[&[&str]] =
    &[&["run", "view", "77", "--log"], &["run", "download", "77"], &["release", "download", "v1.0.0"]];

async fn a_redirect_that_is_passed_on_takes_no_bearer_along_from_a_hosts_file(version: Version) {
    let (world, run, gh) = passing(&version, Credential::Hosts).await;
    for arguments in DOWNLOADS {
        gh.run(arguments).await.ok();
    }
    let downloads = world.github.downloads();
    assert_eq!(downloads.len(), DOWNLOADS.len());
    for request in downloads {
        assert_eq!((request.header("authorization"), request.status), (None, Some(200)));
    }
    let elsewhere = Canned::status(302).header("Location", "https://evil.example/report.zip");
    world.github.when(Route::Rest).path("/repos/acme/api/actions/artifacts/4/zip").answer(elsewhere);
    gh.run(&["run", "download", "77", "--dir=again"]).await.code_is(1);
    assert_eq!(world.recorder().hosts(), [EVIL]);
    assert!(carriers(&run, &world.recorder().requests()).is_empty());
    world.finish().await;
}

async fn a_redirect_that_is_passed_on_takes_the_bearer_of_an_old_gh_along_from_the_environment(version: Version) {
    let (world, run, gh) = passing(&version, Credential::Environment).await;
    let careful = version == newest();
    for arguments in DOWNLOADS {
        // The storage refuses a request that brings a credential.
        gh.run(arguments).await.code_is(i32::from(!careful));
    }
    let downloads = world.github.downloads();
    assert_eq!(downloads.len(), DOWNLOADS.len());
    for request in downloads {
        let expected = (!careful).then(|| format!("token {}", run.bearer));
        assert_eq!(request.header("authorization"), expected.as_deref());
    }
    world.finish().await;
}

/// A door that passes redirects on, and a gh that trusts the storage.
async fn passing(version: &Version, credential: Credential) -> (World, Run, Gh) {
    let world = World::builder(PROGRAM).dataplane_flag("--storage-redirects=pass").start().await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let gh = world.gh_with(&run, version, credential).env("GH_REPO", "git.door.test/acme/api");
    let trusted = [world.ca_file(), world.github.ca_file()].map(|file| fs::read_to_string(file).unwrap()).concat();
    let file = gh.home().join("trusted.pem");
    fs::write(&file, trusted).unwrap();
    (world, run, gh.env("SSL_CERT_FILE", file.display().to_string()))
}
