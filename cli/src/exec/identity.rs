//! The developer's settings of git, as the command gets them: a name and an address.
//!
//! The rest of them is for somebody who has credentials: rewrites of GitHub's URLs to ssh, helpers, keys that sign.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::fence::Caller;

/// A file in place of the developer's own.
pub(super) fn settings() -> String {
    let mut text = "[user]\n".to_owned();
    for name in ["name", "email"] {
        if let Some(value) = value_of(&format!("user.{name}")) {
            let _ = writeln!(text, "\t{name} = {}", quoted(&value));
        }
    }
    text
}

/// What git itself says, wherever it has it from. Without git there is nobody to read the file either.
fn value_of(key: &str) -> Option<String> {
    let mut git = Command::new(Caller::of_this_process().find("git".as_ref())?);
    git.args(["config", "--get", key]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    let value = String::from_utf8(output.stdout).ok()?;
    let value = value.strip_suffix('\n').unwrap_or(&value);
    (!value.contains(char::is_control)).then(|| value.to_owned())
}

/// A value of git's settings, whatever is in it but a control character.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_reads_back_what_was_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gitconfig");
        for value in ["Octo Cat", " a ", r#"O"c\to ; # x"#, "Ünï"] {
            std::fs::write(&file, format!("[user]\n\tname = {}\n", quoted(value))).unwrap();
            let output =
                Command::new("git").arg("config").arg("--file").arg(&file).args(["--get", "user.name"]).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), format!("{value}\n"));
        }
    }
}
