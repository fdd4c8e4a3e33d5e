//! The process: listeners, one single-threaded runtime a core, readiness, the drain.
//!
//! Each runtime accepts on a socket of its own (`SO_REUSEPORT`) and has its own sessions with control and its own
//! connections to the forge: nothing of a request crosses a core.

mod connection;
mod framing;
mod socket;

use std::io;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Unusable};
use crate::{admin, tls};
pub(crate) use socket::Listener;
use socket::Sockets;

/// Time beyond the drain's own for a runtime to end.
const GRACE: Duration = Duration::from_secs(2);

/// What the admin listener tells.
#[derive(Default)]
pub struct Readiness {
    contacts: AtomicUsize,
    draining: AtomicBool,
}

impl Readiness {
    /// A runtime has its first session with control.
    fn contact(&self) {
        self.contacts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether new requests should come here: after the first contact with control, until the drain.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.contacts.load(Ordering::Relaxed) > 0 && !self.draining.load(Ordering::Relaxed)
    }
}

/// A configuration whose listeners are bound.
pub struct Bound {
    config: Arc<Config>,
    public: Sockets,
    admin: Sockets,
}

impl Bound {
    /// Binds every listener, before any of them is served.
    pub fn bind(config: Config) -> Result<Self, Unusable> {
        let bind = |flag, listen: &crate::config::Listen, count| {
            let address = listen.to_string();
            Sockets::bind(listen, count).map_err(|why| Unusable::Address { flag, address, why })
        };
        let public = bind("--listen", &config.listen, config.threads)?;
        let admin = bind("--admin-listen", &config.admin, 1)?;
        Ok(Self { config: Arc::new(config), public, admin })
    }

    /// Serves until SIGTERM or SIGINT, and then until the requests under way have ended.
    pub fn serve(self, metrics: &PrometheusHandle) -> anyhow::Result<()> {
        let Self { config, public, admin } = self;
        let _files = [public.file(), admin.file()];
        let readiness = Arc::new(Readiness::default());
        let draining = CancellationToken::new();
        let ready = format!("ready listen={} admin={}\n", public.address, admin.address);
        let port = public.port;
        let mut threads = Vec::new();
        for (number, socket) in public.into_iter().enumerate() {
            let worker = Worker {
                config: Arc::clone(&config),
                readiness: Arc::clone(&readiness),
                draining: draining.clone(),
                port,
            };
            let name = format!("serve-{number}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || worker.run(socket))?);
        }
        runtime()?.block_on(async {
            for socket in admin {
                tokio::spawn(admin::serve(socket.listener()?, Arc::clone(&readiness), metrics.clone()));
            }
            if let Some(public) = config.tls.clone() {
                tokio::spawn(tls::keep_public(public));
            }
            tokio::spawn(tls::keep_control(config.connector.clone()));
            // Signals are heard before anybody is told that this process serves.
            let ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
            std::io::stdout().write_all(ready.as_bytes())?;
            wait(ends, &threads, metrics).await?;
            tracing::info!("draining");
            readiness.draining.store(true, Ordering::Relaxed);
            draining.cancel();
            join(threads, config.drain_timeout + GRACE).await
        })
    }
}

/// One thread that serves.
struct Worker {
    config: Arc<Config>,
    readiness: Arc<Readiness>,
    draining: CancellationToken,
    port: Option<u16>,
}

impl Worker {
    fn run(self, socket: socket::Socket) -> io::Result<()> {
        runtime()?.block_on(async {
            let listener = socket.listener()?;
            let proxy = connection::proxy(&self.config, self.port);
            let (gate, readiness) = (proxy.gate.clone(), Arc::clone(&self.readiness));
            tokio::spawn(async move {
                gate.connected().await;
                readiness.contact();
            });
            connection::serve(listener, proxy, &self.config, self.draining).await;
            Ok(())
        })
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Waits for a signal; a thread that ended before it is a failure. Meanwhile takes in what histograms have gathered,
/// which nobody may ever come for.
async fn wait(
    [mut terminate, mut interrupt]: [Signal; 2],
    threads: &[JoinHandle<io::Result<()>>],
    metrics: &PrometheusHandle,
) -> anyhow::Result<()> {
    let mut check = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = check.tick() => {
                metrics.run_upkeep();
                anyhow::ensure!(!threads.iter().any(JoinHandle::is_finished), "a serving thread has ended");
            }
        }
    }
}

/// Waits for the threads to end; those that do not in time go down with the process.
async fn join(threads: Vec<JoinHandle<io::Result<()>>>, most: Duration) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + most;
    while threads.iter().any(|thread| !thread.is_finished()) {
        if tokio::time::Instant::now() >= deadline {
            tracing::warn!("requests under way were cut at the drain's end");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
