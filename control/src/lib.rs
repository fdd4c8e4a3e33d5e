//! gitdoor's control plane: runs, bearers, bindings, policy, the push ledger and minting. It decides.
//!
//! A question's way: `service/gate` reads it, `gate` decides it with `policy`, `forge` and `store`, and a permit
//! or a denial goes back. `service/runs` is the other way in, for the owners of runs, with `service/tokens`.

pub mod admin;
pub mod clock;
pub mod config;
pub mod embed;
mod engine;
pub mod fleet;
pub mod forge;
#[cfg(test)]
mod frozen;
pub mod gate;
pub mod github;
pub mod id;
pub mod lease;
pub mod limit;
pub mod listen;
pub mod metrics;
pub mod mirror;
pub mod policy;
pub mod push;
pub mod run;
pub mod server;
pub mod service;
pub mod status;
pub mod store;
pub mod sweep;
pub mod ticket;
pub mod trust;
#[cfg(test)]
mod village;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};
use crate::gate::cause;
use crate::server::Failure;

/// Configuration that parses but cannot be used.
const UNUSABLE: u8 = 64;
/// How often the measured values of histograms are taken in.
const UPKEEP: Duration = Duration::from_secs(5);

/// The whole program: reads the arguments (the first is the program's name), serves until SIGTERM or SIGINT, drains.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let config = match Config::try_parse_from(args) {
        Ok(config) => config,
        Err(usage) => {
            // Help and version too: printed where each belongs. A closed stream changes nothing about the status.
            drop(usage.print());
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(1));
        }
    };
    start_log(&config);
    if let Err(error) = gitdoor_proto::process::close() {
        return failed(&Failure::Runtime(error));
    }
    let failure = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => match runtime.block_on(run(config)) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(failure) => failure,
        },
        Err(error) => Failure::Runtime(error),
    };
    failed(&failure)
}

fn failed(failure: &Failure) -> ExitCode {
    drop(writeln!(io::stderr(), "gitdoor-control: {}", cause(failure)));
    match failure {
        Failure::Unusable(_) => ExitCode::from(UNUSABLE),
        Failure::Runtime(_)
        | Failure::Identity(_)
        | Failure::Store(_)
        | Failure::Address(_)
        | Failure::Describe(_)
        | Failure::Upkeep(_)
        | Failure::Serve(_) => ExitCode::FAILURE,
    }
}

async fn run(config: Config) -> Result<(), Failure> {
    let drain = CancellationToken::new();
    let metrics = start_metrics();
    let upkeep = tokio::spawn(keep_up(metrics.clone()));
    drain_on_signal(drain.clone());
    let served = server::serve(config, metrics, drain, |addresses| {
        tracing::info!(%addresses, "serving");
        let mut out = io::stdout().lock();
        // Whoever started this may not read it; it serves all the same.
        drop(writeln!(out, "ready {addresses}").and_then(|()| out.flush()));
    })
    .await;
    upkeep.abort();
    served
}

fn start_log(config: &Config) {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(&config.log_level)).with_writer(io::stderr);
    // A log that is there already, in a process of several programs, stays.
    drop(match config.log_format {
        LogFormat::Text => log.with_ansi(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    });
}

/// Installs what this process measures with, unless another program in it already did.
#[must_use]
pub fn start_metrics() -> PrometheusHandle {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new();
    // The only error is an empty list of buckets.
    let builder = builder.set_buckets_for_metric(seconds, metrics::SECONDS).unwrap_or_default();
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    drop(::metrics::set_global_recorder(recorder));
    metrics::describe();
    metrics::start();
    handle
}

async fn keep_up(metrics: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP);
    loop {
        ticks.tick().await;
        metrics.run_upkeep();
    }
}

/// Signals are heard when this returns, before anybody is told that this process serves.
fn drain_on_signal(drain: CancellationToken) {
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be heard: this process will not drain");
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("draining");
        drain.cancel();
    });
}
