//! The environments and command lines of other processes, as far as this user may read them.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::surroundings::Surroundings;
use super::{Findings, environment, shapes};

/// Most bytes that are read of an environment or a command line.
const BYTES: u64 = 1 << 20;

/// Looks at every process but this one.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    let proc = surroundings.proc();
    let Ok(entries) = fs::read_dir(proc) else {
        findings.stopped_short(format!("{}: processes cannot be listed, and were not looked at", proc.display()));
        return;
    };
    let mut unread = 0_usize;
    for entry in entries.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if id == std::process::id() {
            continue;
        }
        let folder = entry.path();
        let name = read(&folder.join("comm")).unwrap_or_default();
        let place = format!("process {id} ({})", String::from_utf8_lossy(&name).trim_end());
        for kind in read(&folder.join("cmdline")).iter().flat_map(|line| shapes::find(line)) {
            findings.add(kind, format!("{place}: command line"));
        }
        let Some(variables) = read(&folder.join("environ")) else {
            unread += usize::from(folder.exists());
            continue;
        };
        for (name, value) in variables.split(|byte| *byte == 0).filter_map(split) {
            for kind in environment::judge(name, value) {
                findings.add(kind, format!("{place}: {name}"));
            }
        }
    }
    if unread > 0 {
        findings.note(format!("the environments of {unread} processes are not for this user to read"));
    }
}

/// `NAME=value`; a name that is no text is of no program here.
fn split(variable: &[u8]) -> Option<(&str, &[u8])> {
    let at = memchr::memchr(b'=', variable)?;
    let (name, value) = variable.split_at_checked(at)?;
    Some((str::from_utf8(name).ok()?, value.get(1..)?))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
