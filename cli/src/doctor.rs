//! Looks where a GitHub credential could be in a workspace, and asks the door what the workspace's run may do.
//!
//! Each place is a module with one function, and a parser apart from it. What is found is named by its kind and its
//! place: no value of a credential leaves this module.

mod cache;
mod command;
mod door;
mod environment;
mod files;
mod fill;
mod finding;
mod gh;
mod git_config;
mod netrc;
mod processes;
mod rewrites;
mod scrub;
mod shapes;
mod ssh;
mod stores;
mod surroundings;
mod tree;
mod url;

pub(crate) use door::{Run, Standing};
pub(crate) use finding::{Finding, Findings, Kind};

use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::output;
use surroundings::Surroundings;

/// Looks at one place.
type Look = fn(&Surroundings, &mut Findings);

/// Every place. Files come last: what another place says of a file, it says better.
const PLACES: [Look; 11] = [
    environment::look,
    processes::look,
    git_config::look,
    stores::look,
    cache::look,
    netrc::look,
    gh::look,
    ssh::look,
    fill::look,
    rewrites::look,
    files::look,
];

/// What is wrong with a workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ailment {
    /// Credentials.
    #[error("a GitHub credential was found in it")]
    Credentials,
    /// A bearer that opens nothing.
    #[error("the door does not take its bearer")]
    Bearer,
    /// A door without a token.
    #[error("the door gets nothing from GitHub")]
    CutOff,
    /// A door that is not there.
    #[error("the door cannot be reached from it")]
    Unreachable,
    /// A door that git does not go to.
    #[error("git is led past the door")]
    Astray,
}

impl Ailment {
    /// What to do about it.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Credentials => "`gitdoor doctor --scrub` removes what can be removed",
            Self::Bearer => "is the run live, and is this its bearer? `gitdoor run show` tells",
            Self::CutOff => "whoever operates the door looks at its App: is it installed there, and not suspended?",
            Self::Unreachable => "is --host the door's name, and may the workspace go there?",
            Self::Astray => "remove what was named: of two rewrites of one URL git takes the one in the file",
        }
    }
}

/// What was found, and what was done.
pub(crate) struct Examination {
    pub(crate) findings: Findings,
    /// What was removed, where that was asked for.
    pub(crate) scrubbed: Option<Vec<String>>,
    pub(crate) door: Standing,
}

/// Looks, and says what it found.
pub(crate) fn perform(args: DoctorArgs) -> Result<(), Failure> {
    let (json, scrub) = (args.json, args.scrub);
    let asking = door::Asking::of_flags(args.host.as_ref(), args.bearer_file.as_deref(), args.ca.as_deref())?;
    let mut surroundings = Surroundings::of(args);
    let mut findings = look(&surroundings);
    let mut scrubbed = None;
    if scrub {
        scrubbed = Some(scrub::perform(&surroundings));
        // What is there now is what is reported.
        surroundings = surroundings.again();
        findings = look(&surroundings);
    }
    let asking = asking.or_known(&surroundings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    let door = runtime.block_on(asking.ask());
    let examination = Examination { findings, scrubbed, door };
    output::examined(&examination, json)?;
    examination.ailment().map_or(Ok(()), |ailment| Err(ailment.into()))
}

fn look(surroundings: &Surroundings) -> Findings {
    let mut findings = Findings::default();
    surroundings.remark(&mut findings);
    for look in PLACES {
        look(surroundings, &mut findings);
    }
    findings
}

impl Examination {
    fn ailment(&self) -> Option<Ailment> {
        if !self.findings.is_empty() {
            return Some(Ailment::Credentials);
        }
        match self.door {
            Standing::Unknown | Standing::Open { .. } if !self.findings.astray().is_empty() => {
                Some(Ailment::Astray)
            }
            Standing::Unknown | Standing::Open { .. } => None,
            Standing::Refused { .. } => Some(Ailment::Bearer),
            Standing::CutOff { .. } => Some(Ailment::CutOff),
            Standing::Unreachable { .. } => Some(Ailment::Unreachable),
        }
    }
}
