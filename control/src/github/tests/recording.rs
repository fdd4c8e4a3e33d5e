//! What the log and the metrics say, and what they never say.

use std::io;
use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::PrometheusBuilder;
use tracing::Level;

use super::{bound, write};
use crate::forge::{Forge as _, ReadScope};
use crate::github::stand_in::{Reply, StandIn, now};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn no_log_line_of_any_level_shows_a_secret_and_each_mint_has_one() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.spoil(|answer| answer["expires_at"] = "soon".into());
    write(&github).await.unwrap_err();
    stand_in.spoil(|_| ());
    let minted = write(&github).await.unwrap();
    github.facts(&minted, false, now()).await.unwrap();
    stand_in.reply(Reply::new(403, "suspended"));
    github.read_token(&ReadScope::All, now()).await.unwrap_err();

    let text = lines.text();
    for seen in stand_in.seen() {
        let credential = seen.headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ");
        assert!(!text.contains(credential), "{}", seen.line);
    }
    assert!(!text.contains("x.Y-") && !text.contains("ghs_"));
    let mints: Vec<_> = text.lines().filter(|line| line.contains(" INFO ")).collect();
    let expected = [
        r#"scope="write" repository=acme/api outcome="untrusted" token="-""#.to_owned(),
        format!(r#"scope="write" repository=acme/api outcome="minted" token="{}""#, minted.id()),
        r#"scope="read" repository=all outcome="suspended" token="-""#.to_owned(),
    ];
    assert_eq!(mints.len(), expected.len(), "{mints:#?}");
    for (line, expected) in mints.iter().zip(expected) {
        assert!(line.ends_with(&expected), "{line}\n{expected}");
    }
}

#[tokio::test]
async fn mints_and_hits_are_counted_without_naming_a_repository() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let counts = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    write(&github).await.unwrap();
    write(&github).await.unwrap();
    github.write_token(&bound(), true, now()).await.unwrap();
    stand_in.reply(Reply::new(500, "oops"));
    github.read_token(&ReadScope::All, now()).await.unwrap_err();
    github.read_token(&ReadScope::All, now()).await.unwrap_err();
    let text = counts.render();
    for line in [
        r#"gitdoor_control_mints_total{scope="write",outcome="minted"} 1"#,
        r#"gitdoor_control_mints_total{scope="read",outcome="unavailable"} 1"#,
        r#"gitdoor_control_token_cache_hits_total{scope="write"} 2"#,
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains(r#"hits_total{scope="read"}"#) && !text.contains("acme"), "{text}");
}

#[test]
fn every_outcome_of_a_mint_is_counted_from_the_start() {
    let (_, outcomes) = include_str!("../../github.rs").split_once("\nfn outcome(").unwrap();
    let (outcomes, _) = outcomes.split_once("\n}\n").unwrap();
    let named: Vec<_> =
        outcomes.lines().filter_map(|line| line.split_once(" => \"")?.1.strip_suffix("\",")).collect();
    assert_eq!(named, crate::github::OUTCOMES);
}
