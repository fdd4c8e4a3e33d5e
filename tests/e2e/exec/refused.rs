//! What keeps a command from being started: it is said, and nothing is left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use gitdoor_tests::gh;
use gitdoor_tests::laptop::{Laptop, names};

use crate::PROGRAM;

/// Asserts that a command is not started with these flags, and why.
async fn refused(laptop: &Laptop, flags: &[&str], code: i32, words: &str) {
    laptop.exec(flags, &["touch", "ran"]).await.code_is(code).says(words);
    assert_eq!(names(laptop.work()), Vec::<String>::new(), "{flags:?}");
    assert_eq!(laptop.places(), Vec::<std::path::PathBuf>::new(), "{flags:?}");
}

#[tokio::test]
async fn flags_that_cannot_be_used_are_named_and_the_command_is_not_started() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let token = laptop.token_flag();
    let empty = laptop.state().with_file_name("empty");
    fs::write(&empty, "").unwrap();
    let empty = format!("--token-file={}", empty.display());
    let [id, key, installation] = &laptop.app();
    let open = laptop.state().with_file_name("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let long = format!("--state-dir=/tmp/{}", "x".repeat(100));
    let cases: [(&[&str], i32, &str); 17] = [
        (&["--no-isolation"], 2, "--token-file"),
        (&["--no-isolation", &token, "--from-gh"], 2, "--from-gh"),
        (&["--no-isolation", &token, "--no-workflows"], 2, "--no-workflows"),
        (&["--no-isolation", &token, "--read-repository=acme/api"], 2, "--read-repository"),
        (&["--no-isolation", &token, "--read-statuses"], 2, "--github-app-id"),
        (&["--no-isolation", &token, "--budget=25h"], 2, "1s to 24h"),
        (&["--no-isolation", id, installation], 2, "--github-app-key"),
        (&["--no-isolation", &token, "--identity=read", "--repository=acme/api"], 2, "--repository"),
        (&["--no-isolation", &token, "--show=/"], 2, "--show"),
        (&[&token, "--share=/nonexistent"], 64, "--share /nonexistent"),
        (&[&token, "--show=/"], 64, "--show /"),
        (&["--no-isolation", "--token-file=/nonexistent"], 64, "--token-file /nonexistent"),
        (&["--no-isolation", &empty], 64, "one token is needed"),
        (&["--no-isolation", id, installation, "--github-app-key=/nonexistent"], 64, "--github-app-key"),
        (&["--no-isolation", &token, "--github-url=http://github.com"], 64, "--github-url"),
        (&["--no-isolation", &token, "--github-api-url=http://api.github.com"], 64, "--github-api-url"),
        (&["--no-isolation", &long, id, key, installation], 2, "--state-dir"),
    ];
    for (flags, code, words) in cases {
        refused(&laptop, flags, code, words).await;
    }
}

#[tokio::test]
async fn a_repository_that_github_does_not_confirm_keeps_the_command_from_being_started() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let (token, app) = (laptop.token_flag(), laptop.app());
    let none = "--repository=acme/none";
    refused(&laptop, &["--no-isolation", &token, none], 1, "the door's token sees no repository of that name")
        .await;
    let app = [app[0].as_str(), &app[1], &app[2], "--no-isolation", none];
    refused(&laptop, &app, 1, "cannot be confirmed").await;
    let nobody = ["--no-isolation", &token, "--repository=acme/api", "--github-api-url=https://127.0.0.1:9"];
    refused(&laptop, &nobody, 1, "cannot be reached").await;
    let dead = laptop.state().with_file_name("dead");
    fs::write(&dead, "ghp_dead").unwrap();
    let dead = format!("--token-file={}", dead.display());
    refused(&laptop, &["--no-isolation", &dead, "--repository=acme/api"], 1, "is refused by the forge").await;
}

#[tokio::test]
async fn a_home_that_is_none_is_said_before_gh_is_asked_or_a_folder_made() {
    for home in ["", "relative", "/", "/nonexistent"] {
        let laptop = Laptop::new(PROGRAM, &gh::newest()).with_variable("HOME", home);
        laptop.exec(&["--from-gh"], &["touch", "ran"]).await.code_is(64).says("HOME: the full name of your home");
        assert_eq!(names(laptop.work()), Vec::<String>::new(), "{home}");
        assert!(!laptop.state().exists(), "{home}");
    }
}

#[tokio::test]
async fn a_gh_that_is_not_there_is_said_with_what_else_there_is() {
    // The path of everything but gh.
    let laptop = Laptop::new(PROGRAM, &gh::newest()).with_path("/nonexistent");
    laptop
        .exec(&["--from-gh", "--no-isolation"], &["true"])
        .await
        .code_is(64)
        .says("no gh is on PATH; use --token-file");
}

#[tokio::test]
async fn what_gh_says_when_it_fails_is_not_printed() {
    for (line, words) in [
        ("echo ghp_printed; echo ghp_printed >&2; exit 1", "gh has no token for"),
        ("echo ghp_printed twice; echo ghp_printed >&2", "one token is needed"),
        ("exec yes ghp_printed", "one token is needed"),
    ] {
        let laptop = Laptop::new(PROGRAM, &gh::newest());
        let program = laptop.home().join("bin/gh");
        fs::create_dir(laptop.home().join("bin")).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", laptop.home().join("bin").display());
        let laptop = laptop.with_path(&path);
        let refused = laptop.exec(&["--from-gh"], &["touch", "ran"]).await.code_is(64);
        refused.says(words).does_not_say("ghp_printed");
        assert_eq!(names(laptop.work()), Vec::<String>::new());
    }
}
