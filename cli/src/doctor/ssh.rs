//! Keys of ssh, and an agent that signs with some.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::surroundings::Surroundings;
use super::{Findings, Kind, cache, shapes};

/// Most bytes that are read of a key.
const BYTES: u64 = 64 << 10;

/// Looks into each `.ssh`, and whether an agent answers.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for folder in surroundings.in_homes(".ssh") {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.path();
            if file.is_file() && is_key(&file) {
                findings.add_in(Kind::SshKey, &file, "");
            }
        }
    }
    if let Some(socket) = surroundings.variable("SSH_AUTH_SOCK").filter(|socket| cache::answers(socket.into())) {
        findings.add(Kind::SshAgent, format!("SSH_AUTH_SOCK: {socket}"));
    }
}

fn is_key(file: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BYTES).read_to_end(&mut bytes));
    read.is_ok() && shapes::has_private_key(&bytes)
}
