//! The harness itself: a search that finds nothing must be able to find something.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use gitdoor_proto::v1::Identity;
use gitdoor_tests::git::{self, Git, Transcript};
use gitdoor_tests::pkt;
use gitdoor_tests::world::{Secret, World};

use crate::PROGRAM;

#[test]
fn a_secret_is_found_raw_and_in_base64_at_any_alignment_and_percent_encoded() {
    let text = "q83vEj-WeJCrze_SNFZ4kKvN7xI0VniQq83vEjRWx.y";
    let secret = Secret::new("secret", text);
    for before in 0..7 {
        let around = format!("{}{text}, and more", "x".repeat(before));
        assert!(secret.is_in(&around));
        assert!(secret.is_in(&format!("Basic {}", STANDARD.encode(&around))), "{before}");
        assert!(secret.is_in(&format!("t={}", URL_SAFE.encode(&around))), "{before}");
    }
    assert!(secret.is_in(&text.replace('-', "%2D").replace('_', "%5F").replace('.', "%2E")));
    assert!(!secret.is_in(&text.replace("q83v", "Q83v").replace("kKvN", "KKvN")));
}

#[test]
fn a_report_is_read_in_either_framing() {
    let report = [pkt::line("unpack ok\n"), pkt::line("ng refs/heads/a no\n"), pkt::FLUSH.to_vec()].concat();
    let lines = ["unpack ok", "ng refs/heads/a no"];
    assert_eq!(pkt::report(&report), lines);
    let (first, second) = report.split_at(13);
    let banded =
        [pkt::line([b"\x01", first].concat()), pkt::line("\x02hint\n"), pkt::line([b"\x01", second].concat())];
    let banded = [banded.concat(), pkt::FLUSH.to_vec()].concat();
    assert_eq!(pkt::report(&banded), lines);
    assert_eq!(pkt::band(&banded, 2), b"hint\n");
}

#[tokio::test]
#[should_panic(expected = "did not end within")]
async fn a_command_that_hangs_is_ended_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let git = Git::new(folder.path(), "https://localhost:1", folder.path(), "none", Transcript::default());
    let git = git.limit(Duration::from_millis(200));
    git.run(&["-c", "alias.hang=!sleep 60", "hang"]).await;
}

#[tokio::test]
async fn a_client_is_blind_to_the_settings_of_who_runs_it() {
    for installed in git::all() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::new(folder.path(), "https://localhost:1", folder.path(), "none", Transcript::default());
        let git = git.program(&installed);
        let version = git.run(&["--version"]).await.ok();
        assert!(version.stdout.contains(&installed.version));
        let config = git.run(&["config", "--list", "--show-origin"]).await.ok();
        let foreign = |line: &&str| !line.contains("gitconfig") || line.contains("/etc/");
        assert_eq!(config.stdout.lines().filter(foreign).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

#[tokio::test]
#[should_panic(expected = "a secret, bearer, is in")]
async fn a_world_in_which_a_bearer_was_written_down_does_not_end_well() {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    std::fs::write(world.path().join("clients/leak"), STANDARD.encode(format!("x:{}", run.bearer))).unwrap();
    world.finish().await;
}
