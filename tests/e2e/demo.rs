//! The demo's served world, as somebody at a shell has it.

use std::process::Stdio;
use std::time::Duration;

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
    let git = async |folder: &str, arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(home.path().join(folder)).env_clear().kill_on_drop(true);
        git.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home.path()).envs(exports.clone());
        let output = timeout(SOON, git.output()).await.unwrap().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = git(".", &["clone", "--quiet", "https://github.com/acme/api"]).await;
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = git("api", &["push", "origin", "HEAD:refs/heads/fix-x"]).await;
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = git("api", &["push", "origin", ":main"]).await;
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("refused: default branch"), "{said}");
    let id = serve.id().unwrap().to_string();
    Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    let ended = timeout(SOON, serve.wait()).await.unwrap().unwrap();
    assert!(ended.success(), "{ended}");
}
