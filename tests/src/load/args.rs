//! The flags, and the most that each of them takes.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use gitdoor_proto::RepositoryName;
use http::uri::Authority;

const AFTER: &str = "\
Bounds:
  Nothing begins once the time, the requests or the bytes are spent; what is under way when the time is over has ten \
seconds more, and is then ended and left out. Each request has a minute.

A run has 32 requests and 4 pushes at once, 10 pushed refs a second (1000 before that counts), and 2 API requests a second: above that the door answers 429, and the table \
says so. Register the run for what is to be measured, and give several (--bearer-file again) for more:
  gitdoor run register --run-id load-1 --identity write --repository acme/scratch --branch 'gitdoor-load/*' \
--api-rate 1000 --api-burst 10000 > bearer

Pushes go to branches gitdoor-load/..., one for each of --at-once, which are left for you to delete: a run deletes nothing. \
What GitHub limits (API requests, for one) is spent like any other.

Exit status: 0 all was done; 1 something failed; 2 usage; 64 what cannot be used, or a host that was not confirmed.";

/// What to put under load, and with how much.
#[derive(Debug, Clone, Parser)]
#[command(name = "load", about = "Puts a door under a bounded load of real clients", after_help = AFTER)]
#[command(max_term_width = 100)]
pub(super) struct Args {
    /// The door, by https. One that is not on loopback needs --yes-this-deployment
    #[arg(long, value_name = "NAME[:PORT]", value_parser = host)]
    pub(super) host: Authority,

    /// A file with a run's bearer; with several, the work is shared out among their runs
    #[arg(long = "bearer-file", value_name = "FILE", required = true)]
    pub(super) bearer_files: Vec<PathBuf>,

    /// The repository that is read, and pushed to
    #[arg(long, value_name = "OWNER/NAME", value_parser = RepositoryName::parse)]
    pub(super) repository: RepositoryName,

    /// The authorities that the door's certificate is by, where no public one is: a PEM file
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,

    /// For how long, 600 at most
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(super) seconds: u64,

    /// How many clients at once, 64 at most
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) at_once: u16,

    /// What is done, in turn
    #[arg(long, value_delimiter = ',', default_value = "discovery,rest,clone")]
    pub(super) kinds: Vec<Kind>,

    /// Most requests, 100000 at most; a clone or a push is one
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) most_requests: u64,

    /// Most bytes to have come and gone before another request begins, 100 GiB at most
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100 << 30))]
    pub(super) most_bytes: u64,

    /// Bytes of the file that each push brings, 64 MiB at most; they do not compress
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub(super) push_bytes: u32,

    /// The host is mine, is not this machine, and may be put under load
    #[arg(long)]
    pub(super) yes_this_deployment: bool,
}

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Kind {
    /// What every git command begins with: GET info/refs
    Discovery,
    /// What the run may do, which the door answers itself: GET /api/v3/gitdoor/run
    Run,
    /// The repository as REST tells it, from GitHub: GET /api/v3/repos/OWNER/NAME
    Rest,
    /// git clone --bare
    Clone,
    /// git push of one commit to a branch gitdoor-load/...
    Push,
}

impl Kind {
    /// As the flag and the table spell it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Run => "run",
            Self::Rest => "rest",
            Self::Clone => "clone",
            Self::Push => "push",
        }
    }
}

impl Args {
    /// Whether the door is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let name = self.host.host();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The door's URL, without a slash at its end.
    pub(super) fn door(&self) -> String {
        format!("https://{}", self.host)
    }
}

/// Text that is no host.
#[derive(Debug, thiserror::Error)]
#[error("a host is NAME or NAME:PORT, without a scheme, a user or a path")]
struct InvalidHost;

fn host(text: &str) -> Result<Authority, InvalidHost> {
    let is_plain = !text.contains(['@', '/', '\\']) && !text.is_empty();
    text.parse().ok().filter(|_| is_plain).ok_or(InvalidHost)
}
