//! The demo's served world, as somebody at a shell has it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use gitdoor_tests::gh;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::PROGRAM;

/// Longest wait for anything here.
const SOON: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_served_demo_gives_a_shell_what_it_needs_and_ends_with_a_signal() {
    let home = tempfile::tempdir().unwrap();
    let serve = Command::new(PROGRAM).args(["--", "--serve"]).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let mut serve = serve.unwrap();
    let mut lines = BufReader::new(serve.stdout.take().unwrap()).lines();
    let mut exports = Vec::new();
    while let Some(line) = timeout(SOON, lines.next_line()).await.unwrap().unwrap() {
        if line == "ready" {
            break;
        }
        let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
        exports.push((name.to_owned(), value.trim_matches('\'').to_owned()));
    }
    let run = async |program: &Path, folder: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(home.path().join(folder)).env_clear().kill_on_drop(true);
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home.path()).envs(exports.clone());
        let output = timeout(SOON, command.output()).await.unwrap().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let git = async |folder: &str, arguments: &[&str]| run(Path::new("git"), folder, arguments).await;
    let (status, said) = git(".", &["clone", "--quiet", "https://github.com/acme/api"]).await;
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = git("api", &["push", "origin", "HEAD:refs/heads/fix-x"]).await;
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = git("api", &["push", "origin", ":main"]).await;
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("refused: default branch"), "{said}");
    let (_, door) = exports.iter().find(|(name, _)| name == "GITDOOR_URL").unwrap();
    let (status, said) = git(".", &["ls-remote", &format!("{door}/acme/api"), "refs/heads/fix-x"]).await;
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("refs/heads/fix-x"), "{said}");
    for gh in gh::versions() {
        // In the clone of a URL of github.com it finds the door, and the repository.
        for (arguments, words) in [
            (&["pr", "checkout", "42"][..], "feature-42"),
            (&["pr", "diff", "42", "--name-only"], "docs/greeting.md"),
            (&["run", "view", "77", "--log"], "test greets_by_name ... ok"),
            (&["api", "gitdoor/run", "--jq", ".summary"], "it may push branches of acme/api other than main"),
        ] {
            let (status, said) = run(&gh.program, "api", arguments).await;
            assert_eq!(status, Some(0), "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
        let (status, said) = run(&gh.program, ".", &["api", "https://api.github.com/user"]).await;
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("recorder: not the door"), "{said}");
    }
    let id = serve.id().unwrap().to_string();
    Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    let ended = timeout(SOON, serve.wait()).await.unwrap().unwrap();
    assert!(ended.success(), "{ended}");
}
