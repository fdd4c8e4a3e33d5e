//! What operators see of the sessions: metrics, and few lines in the log.

use std::io::Write;
use std::sync::Mutex;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

use super::*;

async fn until_rendered(metrics: &PrometheusHandle, line: &str) {
    let rendered = async {
        while !metrics.render().lines().any(|other| other == line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let rendered = tokio::time::timeout(LONG, rendered).await;
    rendered.unwrap_or_else(|_| panic!("no {line} in {}", metrics.render()));
}

#[tokio::test]
async fn sessions_are_counted_by_state_and_questions_that_are_asked_again_by_why() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let (mut a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    let sessions = |state, count| format!("gitdoor_dataplane_control_sessions{{state=\"{state}\"}} {count}");
    let again = |why, count| format!("gitdoor_dataplane_questions_asked_again_total{{why=\"{why}\"}} {count}");
    until_rendered(&metrics, &sessions("live", 2)).await;
    a.be_silent();
    ask_many(&gate, 2, 1).await;
    until_rendered(&metrics, &sessions("silent", 1)).await;
    until_rendered(&metrics, &again("silent", 1)).await;
    until_rendered(&metrics, &sessions("live", 1)).await;
    a.stop().await;
    until_rendered(&metrics, &sessions("lost", 1)).await;
    until_rendered(&metrics, &sessions("silent", 0)).await;
    let Place::Tcp(address) = a.place else { panic!() };
    let listener = TcpListener::bind(address).await.unwrap();
    for _ in 0..3 {
        drop(listener.accept().await.unwrap());
        assert!(metrics.render().contains(&sessions("lost", 1)), "an attempt was counted");
    }
    drop(listener);
    a.start_again().await;
    until_rendered(&metrics, &sessions("live", 2)).await;
    until_rendered(&metrics, &sessions("lost", 0)).await;
    b.be_silent();
    a.speak();
    drop(gate);
    until_rendered(&metrics, &sessions("live", 0)).await;
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn count(&self, words: &str) -> usize {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().matches(words).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_outage_is_told_of_with_the_address_once_and_its_end_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _local = tracing::subscriber::set_default(subscriber);
    let mut a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    a.stop().await;
    until_live(&gate, 0).await;
    let Place::Tcp(address) = a.place else { panic!() };
    let listener = TcpListener::bind(address).await.unwrap();
    for _ in 0..4 {
        drop(listener.accept().await.unwrap());
    }
    drop(listener);
    a.start_again().await;
    until_live(&gate, 1).await;
    assert_eq!(log.count(&a.place.address().to_string()), 3, "{}", String::from_utf8_lossy(&log.0.lock().unwrap()));
    assert_eq!((log.count("session with control control="), log.count("was lost control=")), (2, 1));
}
