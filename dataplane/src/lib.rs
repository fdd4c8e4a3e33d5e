//! The data plane: parses, asks control, enforces, streams, measures. It holds no key, no database and no decision.
//!
//! Read [`proxy`] first: a request's walk is one function there.

pub mod admin;
pub mod answer;
pub mod api;
pub mod body;
pub mod config;
pub mod credential;
pub mod gate;
pub mod git;
pub mod gunzip;
pub mod headers;
pub mod host;
pub mod intent;
pub mod metrics;
pub mod origin;
pub mod proxy;
pub mod record;
pub mod refusal;
pub mod route;
pub mod server;
pub mod tls;
pub mod upstream;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use config::{Args, Unusable};

/// Exit code of a configuration that parses and cannot be used.
const UNUSABLE: u8 = 64;

/// The program: reads flags and environment, serves until a signal, drains.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // A closed terminal is no reason to fail in another way.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    args.log.install();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whatever is logged, and in which form: who starts it must read why it did not.
            drop(writeln!(io::stderr(), "gitdoor-dataplane: {error:#}"));
            let unusable = error.downcast_ref::<Unusable>().is_some();
            if unusable { ExitCode::from(UNUSABLE) } else { ExitCode::FAILURE }
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    gitdoor_proto::process::close()?;
    let metrics = metrics::install()?;
    let config = args.check()?;
    let bound = server::Bound::bind(config)?;
    bound.serve(&metrics)
}
