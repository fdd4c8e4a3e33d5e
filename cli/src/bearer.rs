//! A run's bearer from the file that holds it.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use gitdoor_proto::Bearer;
use gitdoor_proto::bearer::InvalidBearer;

use crate::env::EnvError;

/// Most bytes that are read of the file: more than any bearer has.
const BYTES: u64 = 1024;

/// Reads a file that holds one bearer, and at most white space after it.
pub(crate) fn read(path: &Path) -> Result<Bearer, EnvError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES).read_to_end(&mut bytes))
        .map_err(|why| EnvError::Unreadable { flag: "--bearer-file", path: path.to_owned(), why })?;
    let text = str::from_utf8(&bytes).map_err(|_other| InvalidBearer);
    text.and_then(|text| Bearer::parse(text.trim_end()))
        .map_err(|why| EnvError::NoBearer { path: path.to_owned(), why })
}
