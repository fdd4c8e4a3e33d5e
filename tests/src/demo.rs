//! `cargo demo`: gitdoor at work on loopback, command by command, each step checked.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is there to be read in a terminal")]

mod reading;
mod serve;
mod story;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
gitdoor at work, on this machine alone: no root, no GitHub account, no change to any file of yours.

Usage: cargo demo                A story in seconds: stock git clones, is refused, pushes, is refused elsewhere; stock
                                 gh reads, and is refused where it would write; the run is revoked. Exits 0 only if
                                 every step did what it should.
       cargo demo -- --serve     Prints what a shell needs to work with https://github.com/acme/api through the door
                                 with a fresh run, then `ready`, and stays until Ctrl-C:
                                     cargo demo -- --serve > door.sh &   then, once it says ready:
                                     grep ^export door.sh > exports.sh && . ./exports.sh
                                     git clone https://github.com/acme/api && cd api
                                     gh pr view 42; gh pr checkout 42; gh run view 77 --log
                                     gh api --paginate 'repos/acme/api/issues?per_page=100' --jq length
                                     curl --cacert $SSL_CERT_FILE -u x:$GITDOOR_BEARER $GITDOOR_URL/api/v3/gitdoor/run
                                 That shell reaches nothing but the door by HTTPS. A gh of a known version is where
                                 `tests/run machine` puts it: target/gh/2.102.0/gh.
       cargo demo -- --help      This text.

It starts gitdoor's control and data plane as processes of their own, and a stand-in for GitHub: a small server with
real repositories that mints tokens and enforces them. All of it ends with the demo, and its folder is removed.";

/// Runs the demo; `arguments` come without the program's name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    // `cargo demo` brings a `--` of its own, so that both `cargo demo --serve` and `cargo demo -- --serve` work.
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).filter(|argument| *argument != "--").collect();
    match arguments.as_slice() {
        [] => run(story::tell()),
        ["--serve"] => run(serve::serve()),
        ["--help" | "-h"] => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        unknown => {
            eprintln!("unknown: {unknown:?}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn run(demo: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.expect("a runtime").block_on(demo) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
