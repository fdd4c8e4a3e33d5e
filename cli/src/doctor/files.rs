//! The files of home and workspace, looked through for what has a credential's shape.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::surroundings::Surroundings;
use super::{Findings, shapes};

/// Most bytes that are read of a file.
const BYTES: u64 = 4 << 20;
/// How long it may take in all.
const LIMIT: Duration = Duration::from_mins(1);

/// Looks through each file in which nothing was found yet.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    let (started, files) = (Instant::now(), surroundings.tree().files());
    let (mut bytes, mut long) = (Vec::new(), 0_usize);
    for (number, file) in files.iter().enumerate() {
        if started.elapsed() > LIMIT {
            findings
                .stopped_short(format!("after {LIMIT:?}, {number} of {} files were looked through", files.len()));
            break;
        }
        if findings.is_named(file) || !read(file, &mut bytes) {
            continue;
        }
        long += usize::from(bytes.len() as u64 == BYTES);
        for kind in shapes::find(&bytes) {
            findings.add_in(kind, file, "");
        }
    }
    if long > 0 {
        findings.stopped_short(format!("of {long} files only the first {} MiB were looked through", BYTES >> 20));
    }
}

/// What this user may not read is no credential of theirs.
fn read(file: &Path, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    // It was a file when it was listed; a pipe that took its place would be waited for.
    let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
    is_file && File::open(file).and_then(|file| file.take(BYTES).read_to_end(bytes)).is_ok()
}
