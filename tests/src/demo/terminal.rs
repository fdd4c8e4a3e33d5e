//! What a reader of the demo sees: its own words, what was typed, what was printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::client::Output;
use crate::world::Secret;

/// Says what comes next, or what was found.
pub(super) fn say(words: &str) {
    println!("\n# {words}");
}

/// Shows a command as it is typed at a shell.
pub(super) fn typed(program: &str, arguments: &[&str]) {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    let quoted = |argument: &&str| {
        if argument.chars().all(plain) { (*argument).to_owned() } else { format!("'{argument}'") }
    };
    println!("\n$ {program} {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" "));
}

/// Shows what a command printed.
pub(super) fn shown(output: Output) -> Output {
    print!("{}", output.text());
    output
}

/// Fails unless a command ended with this status, and said this.
pub(super) fn expect(output: &Output, code: i32, words: &str) -> Result<()> {
    ensure!(output.code == Some(code), "exit status {code} was expected of {output}");
    ensure!(output.text().contains(words), "{words:?} was expected of {output}");
    Ok(())
}

/// Fails if a secret is in the environment or in a file of the home; how many files were searched.
pub(super) fn search(secrets: &[Secret], environment: &[(String, String)], home: &Path) -> Result<usize> {
    ensure!(!holds(secrets, format!("{environment:?}").as_bytes()), "a token is in the environment");
    let files = files(home)?;
    for file in &files {
        ensure!(!holds(secrets, &fs::read(file)?), "a token is in {}", file.display());
    }
    Ok(files.len())
}

/// Whether one of the secrets is in these bytes.
pub(super) fn holds(secrets: &[Secret], bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    secrets.iter().any(|secret| secret.is_in(&text))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else if entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}
