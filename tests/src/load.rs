//! `load`: a bounded amount of real work for a door, one's own deployment or one on loopback, and a table of how it went.
//! Clones and pushes are stock git's; discoveries and reads of the API are plain HTTP.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is there to be read in a terminal")]

mod args;
mod budget;
mod drive;
mod stock;
mod table;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::Args;

/// Configuration that parses and cannot be used, as for the programs that are put under load.
const UNUSABLE: u8 = 64;

/// What keeps the work from beginning.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(
        "--host {0} is not this machine: give --yes-this-deployment as well, if it is yours and may be put under load"
    )]
    NotLoopback(String),
    #[error("--bearer-file {path}: a file that holds one run's bearer and nothing else is needed")]
    Bearer { path: String },
    #[error("--ca {path}: a PEM file with certificates is needed")]
    Authorities { path: String },
    #[error("no client for HTTPS can be made: {0}")]
    Client(#[from] reqwest::Error),
    #[error("no folder to work in: {0}")]
    Folder(#[from] std::io::Error),
}

/// Reads the arguments, the program's name first, does the work and prints the table. Exits 0 if all was done, 1 if
/// anything failed, 2 for usage, 64 for what cannot be used.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(usage) => {
            // A closed terminal is no reason to fail in another way.
            drop(usage.print());
            return ExitCode::from(if usage.use_stderr() { 2 } else { 0 });
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(drive::drive(args)) {
        Ok(tally) => {
            print!("{tally}");
            if tally.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("load: {why}");
            ExitCode::from(UNUSABLE)
        }
    }
}
