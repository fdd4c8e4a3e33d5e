//! A look from inside before the command is: `gitdoor doctor`, behind the same fence.

use std::ffi::OsString;
use std::process::Stdio;

use serde::Deserialize;

use super::{Fence, FenceError, Plan};

/// What was found.
#[derive(Debug, Deserialize)]
pub struct Examined {
    /// Credentials that the command would have: there should be none.
    pub findings: Vec<Finding>,
    /// What leads its git past the door.
    pub astray: Vec<String>,
    /// What was not looked at.
    pub notes: Vec<String>,
}

/// A credential, by its kind and its place.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// `ssh-key`.
    pub kind: String,
    /// The file, the variable, ...
    pub place: String,
    /// The kind, for people.
    pub words: String,
}

/// Which door there is. It is not asked: that it answers is for whoever opens it to see.
const DOOR: [&str; 2] = ["GH_HOST", "GH_CONFIG_DIR"];

impl Fence {
    /// Looks for GitHub credentials where the command of this plan would be, with what it would have.
    pub fn examine(&self, plan: &Plan) -> Result<Examined, FenceError> {
        let mut doctor: Vec<OsString> =
            [self.program.as_os_str(), "doctor".as_ref(), "--json".as_ref()].map(Into::into).into();
        for home in self.caller.homes()? {
            doctor.extend(["--home".into(), home.into()]);
        }
        let seen = [&plan.work].into_iter().chain(&plan.show).chain(&plan.share).filter(|place| place.is_dir());
        for place in seen {
            doctor.extend(["--workspace".into(), place.into()]);
        }
        let mut plan = Plan { command: doctor, ..plan.clone() };
        plan.set.retain(|(name, _)| !DOOR.contains(&name.as_str()));
        let mut command = self.command(&plan)?;
        let unexamined = |why: &dyn ToString| FenceError::Unexamined(why.to_string());
        let output = command.stdin(Stdio::null()).output().map_err(|why| unexamined(&why))?;
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).map_err(|why| unexamined(&format!("{}: {why}", said.trim())))
    }
}
