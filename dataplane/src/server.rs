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

use crate::config::{Config, Listen, Unusable};
use crate::{admin, tls};
pub(crate) use socket::Listener;
use socket::{SocketFile, Sockets};

/// Time beyond the drain's own for a runtime to end.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether the threads have ended.
const POLL: Duration = Duration::from_millis(20);

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
    public: Public,
    admin: Sockets,
}

impl Bound {
    /// Binds every listener, before any of them is served.
    pub fn bind(config: Config) -> Result<Self, Unusable> {
        let listen = config.listen.clone();
        let (count, config) = (config.threads, Arc::new(config));
        let public = Public::bind(&config, &[listen], count)?;
        let admin = bind("--admin-listen", &config.admin, 1)?;
        Ok(Self { public, admin })
    }

    /// Serves until SIGTERM or SIGINT, and then until the requests under way have ended.
    pub fn serve(self, metrics: &PrometheusHandle) -> anyhow::Result<()> {
        let Self { public, admin } = self;
        let _file = admin.file();
        let ready = format!("ready listen={} admin={}\n", public.address(), admin.address);
        let config = Arc::clone(&public.config);
        let workers = public.start()?;
        runtime()?.block_on(async {
            for socket in admin {
                let readiness = Arc::clone(&workers.readiness);
                tokio::spawn(admin::serve(socket.listener()?, readiness, metrics.clone()));
            }
            if let Some(public) = config.tls.clone() {
                tokio::spawn(tls::keep_public(public));
            }
            tokio::spawn(tls::keep_control(config.connector.clone()));
            // Signals are heard before anybody is told that this process serves.
            let ends = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
            std::io::stdout().write_all(ready.as_bytes())?;
            wait(ends, &workers, metrics).await?;
            tracing::info!("draining");
            workers.drain().await;
            Ok(())
        })
    }
}

fn bind(flag: &'static str, listen: &Listen, count: usize) -> Result<Sockets, Unusable> {
    Sockets::bind(listen, count).map_err(|why| Unusable::Address { flag, address: listen.to_string(), why })
}

/// The public listeners, bound: all that a program needs that has a data plane in it.
pub struct Public {
    config: Arc<Config>,
    listeners: Vec<Sockets>,
}

impl Public {
    /// Binds these listeners, each for so many threads.
    pub fn bind(config: &Arc<Config>, listeners: &[Listen], threads: usize) -> Result<Self, Unusable> {
        let bound = listeners.iter().map(|listen| bind("--listen", listen, threads));
        Ok(Self { config: Arc::clone(config), listeners: bound.collect::<Result<_, _>>()? })
    }

    /// The port of the first listener that has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.listeners.iter().find_map(|sockets| sockets.port)
    }

    fn address(&self) -> String {
        let addresses: Vec<_> = self.listeners.iter().map(|sockets| sockets.address.as_str()).collect();
        addresses.join(",")
    }

    /// Starts the threads that serve.
    pub fn start(self) -> io::Result<Workers> {
        let Self { config, listeners } = self;
        let (readiness, draining) = (Arc::new(Readiness::default()), CancellationToken::new());
        let files = listeners.iter().map(Sockets::file).collect();
        let mut threads = Vec::new();
        for sockets in listeners {
            let port = sockets.port;
            for socket in sockets {
                let worker = Worker {
                    config: Arc::clone(&config),
                    readiness: Arc::clone(&readiness),
                    draining: draining.clone(),
                    port,
                };
                let name = format!("serve-{}", threads.len());
                threads.push(std::thread::Builder::new().name(name).spawn(move || worker.run(socket))?);
            }
        }
        Ok(Workers { threads, readiness, draining, drain_timeout: config.drain_timeout, _files: files })
    }
}

/// The threads that serve, until they are drained.
pub struct Workers {
    threads: Vec<JoinHandle<io::Result<()>>>,
    readiness: Arc<Readiness>,
    draining: CancellationToken,
    drain_timeout: Duration,
    _files: Vec<SocketFile>,
}

impl Workers {
    /// Whether each has its first session with control: a request before that is told that there is none.
    #[must_use]
    pub fn are_connected(&self) -> bool {
        self.readiness.contacts.load(Ordering::Relaxed) >= self.threads.len()
    }

    /// Whether one has ended; before the drain, none should.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Takes no new connection, and waits for the requests under way. Those that do not end in time go down with the
    /// process.
    pub async fn drain(self) {
        self.readiness.draining.store(true, Ordering::Relaxed);
        self.draining.cancel();
        let deadline = tokio::time::Instant::now() + self.drain_timeout + GRACE;
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            if tokio::time::Instant::now() >= deadline {
                tracing::warn!("requests under way were cut at the drain's end");
                return;
            }
            tokio::time::sleep(POLL).await;
        }
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
    workers: &Workers,
    metrics: &PrometheusHandle,
) -> anyhow::Result<()> {
    let mut check = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = check.tick() => {
                metrics.run_upkeep();
                anyhow::ensure!(!workers.has_ended(), "a serving thread has ended");
            }
        }
    }
}
