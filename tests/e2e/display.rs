//! What git prints of a report: of each recorded one that has the shape of the door's refusals, and of the door's own.
//!
//! Git talks to a server here that answers discovery with a fixed advertisement and the push with the given bytes.

mod server;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_dataplane::git::receive_pack::{Capabilities, Report};
use gitdoor_dataplane::git::report_status;
use gitdoor_tests::git::{self, Git, Installed, Transcript};
use gitdoor_tests::pkt;
use serde::Deserialize;

use server::Server;

const RECORDED: &str = include_str!("../wire/report_status_display.json");

/// Where the recorded pushes went.
const RECORDED_URL: &str = "https://git.door.test/o/r.git";

/// The git that printed what was recorded.
const RECORDED_VERSION: &str = "2.47.3";

/// How many of the recorded answers have the shape of a refusal by the door.
const REFUSALS: usize = 30;

/// A push, what it was answered, and what git printed.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    args: Vec<String>,
    response_b64: String,
    rc: serde_json::Value,
    stdout: String,
    stderr: String,
}

impl Recorded {
    fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.response_b64).unwrap()
    }

    /// The capabilities that the server advertised.
    fn advertised(&self) -> String {
        let has = |part: &str| self.name.contains(part);
        let mut words = vec!["report-status", "delete-refs", "quiet", "atomic", "ofs-delta", "push-options"];
        if !has("v1_only") {
            words.push("report-status-v2");
        }
        if has("side_band_not_64k") {
            words.push("side-band");
        } else if !has("no_sideband_adv") {
            words.push("side-band-64k");
        }
        if !has("no_object_format") {
            words.push("object-format=sha1");
        }
        words.join(" ")
    }

    /// The refs that the push is for.
    fn refs(&self) -> Vec<String> {
        let specs = self.args.iter().skip_while(|argument| *argument != "origin").skip(1);
        specs.map(|spec| format!("refs/heads/{}", spec.rsplit(':').next().unwrap())).collect()
    }

    /// Whether it is answered as the door refuses: in the framing that git asked for, perhaps hints first, then
    /// `unpack ok`, a reason in plain text for each ref of the push and no other, and each flush that is due.
    fn is_refusal(&self) -> bool {
        let body = self.body();
        let text = |bytes: &[u8]| !bytes.is_empty() && !String::from_utf8_lossy(bytes).contains(char::is_control);
        let line =
            |bytes: &[u8]| bytes.strip_suffix(b"\n").is_some_and(|line| line.split(|b| *b == b'\n').all(text));
        let report = if self.advertised().contains("side-band-64k") {
            let packets = pkt::split(&body);
            let is_whole = packets.last() == Some(&None) && body.ends_with(b"00000000");
            let Some(packets) = packets[..packets.len().max(1) - 1].iter().cloned().collect::<Option<Vec<_>>>()
            else {
                return false;
            };
            let hints = packets.iter().take_while(|packet| packet[0] == 2).count();
            let bands_are = packets[hints..].iter().all(|packet| packet[0] == 1 && packet.len() > 1);
            if !is_whole || !bands_are || !packets[..hints].iter().all(|hint| line(&hint[1..])) {
                return false;
            }
            pkt::band(&body, 1)
        } else {
            body
        };
        let lines = pkt::split(&report);
        let Some((None, lines)) = lines.split_last() else { return false };
        let refused: Vec<Option<String>> = lines.iter().skip(1).map(|line| refused_ref(line.as_deref())).collect();
        lines.first() == Some(&Some(b"unpack ok\n".to_vec()))
            && refused == self.refs().into_iter().map(Some).collect::<Vec<_>>()
    }
}

/// The ref of an `ng` line that has a reason.
fn refused_ref(line: Option<&[u8]>) -> Option<String> {
    let line = std::str::from_utf8(line?.strip_suffix(b"\n")?).ok()?;
    let (name, reason) = line.strip_prefix("ng ")?.split_once(' ')?;
    (!reason.is_empty() && !reason.contains(char::is_control)).then(|| name.to_owned())
}

/// Versions of git differ in how they word their advice.
fn without_advice(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("hint: ")).flat_map(|line| [line, "\n"]).collect()
}

/// A work tree with the branches that the recorded pushes name, whose `origin` is the server.
async fn client(folder: &std::path::Path, program: &Installed, server: &Server) -> Git {
    let git = Git::new(folder, &server.url(), folder, "none", Transcript::default()).program(program);
    git.run(&["init", "--quiet"]).await.ok();
    git.run(&["remote", "add", "origin", &git.url("o/r")]).await.ok();
    for number in 0..6 {
        git.run(&["commit", "--quiet", "--allow-empty", "-m", &format!("{number}")]).await.ok();
    }
    let main = git.id_of("main").await;
    server.has(&[("refs/heads/dev", &main), ("refs/heads/main", &main)]);
    git.run(&["checkout", "--quiet", "-b", "a1"]).await.ok();
    git.run(&["commit", "--quiet", "--allow-empty", "-m", "a1"]).await.ok();
    git.run(&["branch", "a2"]).await.ok();
    git.run(&["branch", "a3"]).await.ok();
    git.run(&["checkout", "--quiet", "main"]).await.ok();
    git
}

#[tokio::test]
async fn a_report_of_the_doors_shape_is_shown_by_every_git_as_it_was_recorded() {
    let recorded: Vec<Recorded> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 67);
    let refusals: Vec<&Recorded> = recorded.iter().filter(|recorded| recorded.is_refusal()).collect();
    let names: Vec<&str> = refusals.iter().map(|recorded| recorded.name.as_str()).collect();
    assert_eq!(names.len(), REFUSALS, "{names:#?}");
    for installed in git::all() {
        let (folder, server) = (tempfile::tempdir().unwrap(), Server::start().await);
        let git = client(folder.path(), &installed, &server).await;
        for recorded in &refusals {
            server.answers(&recorded.advertised(), recorded.body());
            let said = git.run(&recorded.args).await;
            let url = git.url("o/r");
            let expected = [&recorded.stdout, &recorded.stderr].map(|text| text.replace(RECORDED_URL, &url));
            let same = installed.version == RECORDED_VERSION;
            let (shown, expected) = if same {
                ([said.stdout.clone(), said.stderr.clone()], expected)
            } else {
                (
                    [&said.stdout, &said.stderr].map(|text| without_advice(text)),
                    expected.map(|t| without_advice(&t)),
                )
            };
            let what = format!("{} with {}: {said}", recorded.name, installed.version);
            assert_eq!(said.code.map(serde_json::Value::from), Some(recorded.rc.clone()), "{what}");
            assert_eq!(shown, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn every_git_shows_the_reason_of_each_ref_that_the_door_refuses() {
    let long = "x".repeat(400);
    let reasons = ["default branch", "another ref of this push was refused", long.as_str()];
    let names = ["a1", "a2", "a3"].map(|name| format!("refs/heads/{name}"));
    let lines: Vec<(&[u8], &str)> = names.iter().map(String::as_bytes).zip(reasons).collect();
    for installed in git::all() {
        let (folder, server) = (tempfile::tempdir().unwrap(), Server::start().await);
        let git = client(folder.path(), &installed, &server).await;
        for (report, word) in [(Report::V1, "report-status"), (Report::V2, "report-status report-status-v2")] {
            for (side_band_64k, band) in [(true, "side-band-64k"), (false, "")] {
                let capabilities = Capabilities { report, side_band_64k, ..Capabilities::default() };
                for hints in [&[][..], &["what may be pushed"], &["one", "two\u{1b}[31m"]] {
                    let body = report_status::refusal(&capabilities, &lines, hints).unwrap();
                    server.answers(&format!("{word} {band} atomic quiet object-format=sha1"), body.to_vec());
                    for options in [&[][..], &["--atomic"], &["--porcelain"], &["--quiet"], &["--force"]] {
                        let said = git.run(&[&["push"], options, &["origin", "a1", "a2", "a3"]].concat()).await;
                        let said = said.code_is(1).does_not_say("\u{1b}");
                        for reason in reasons {
                            let shown = format!("(refused: {reason})");
                            let line = said.text().lines().find(|line| line.ends_with(&shown)).map(str::to_owned);
                            assert!(line.is_some_and(|line| line.contains("[remote rejected]")), "{said}");
                        }
                        for hint in hints.iter().filter(|_| side_band_64k) {
                            let plain = hint.replace('\u{1b}', " ");
                            assert!(said.text().contains(&format!("remote: {plain}")), "{said}");
                        }
                    }
                }
            }
        }
    }
}
