//! Keys of ssh, an agent that signs with some, and an editor that answers likewise.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::surroundings::Surroundings;
use super::{Findings, Kind, cache, shapes};
use crate::env::EDITOR;

/// Most bytes that are read of a key.
const BYTES: u64 = 64 << 10;

/// Looks into each `.ssh`, and whether an agent or an editor answers.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for folder in surroundings.in_homes(".ssh") {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.path();
            if file.is_file() && is_key(&file) {
                findings.add_in(Kind::SshKey, &file, "");
            }
        }
    }
    for (name, kind) in [("SSH_AUTH_SOCK", Kind::SshAgent), (EDITOR, Kind::Editor)] {
        if let Some(socket) = surroundings.variable(name).filter(|socket| cache::answers(socket.into())) {
            findings.add(kind, format!("{name}: {socket}"));
        }
    }
}

fn is_key(file: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BYTES).read_to_end(&mut bytes));
    read.is_ok() && shapes::has_private_key(&bytes)
}
