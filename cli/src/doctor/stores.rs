//! The files in which git keeps passwords: <https://git-scm.com/docs/git-credential-store>.

use std::path::PathBuf;

use super::surroundings::{Surroundings, text_of};
use super::{Findings, Kind, url};

/// Looks into each.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for file in files(surroundings) {
        let Some(text) = text_of(&file) else { continue };
        for line in text.lines().filter(|line| url::credential_of(line).is_some()) {
            findings.add_in(Kind::StoredPassword, &file, url::host_of(line).unwrap_or_default());
        }
    }
}

/// Where they are by default, and where a helper in git's settings is told that they are.
pub(super) fn files(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut files = surroundings.in_homes(".git-credentials");
    files.extend(surroundings.in_config("git/credentials"));
    files.extend(options(surroundings, "store", "--file"));
    files
}

/// The values of an option that helpers of this name have in git's settings.
pub(super) fn options(surroundings: &Surroundings, helper: &str, option: &str) -> Vec<PathBuf> {
    let is_helper = |key: &str| key.starts_with("credential.") && key.ends_with(".helper");
    let settings = surroundings.settings().filter(|setting| is_helper(&setting.key));
    let values = settings.filter_map(|setting| value_of(&setting.value, helper, option));
    let absolute = values.filter_map(|value| match value.strip_prefix("~/") {
        Some(rest) => surroundings.homes().first().map(|home| home.join(rest)),
        None => Some(PathBuf::from(value)),
    });
    absolute.collect()
}

/// `store --file=X`, `store --file X`.
fn value_of(value: &str, helper: &str, option: &str) -> Option<String> {
    let mut words = value.split_ascii_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    if program.strip_prefix("git-credential-").unwrap_or(program) != helper {
        return None;
    }
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => return words.next().map(unquoted),
            Some(rest) if rest.starts_with('=') => return rest.strip_prefix('=').map(unquoted),
            Some(_) | None => {}
        }
    }
    None
}

fn unquoted(word: &str) -> String {
    word.trim_matches(['\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helpers_file_is_where_its_option_says() {
        for (value, file) in [
            ("store --file /a/b", Some("/a/b")),
            ("store --file='/a/b'", Some("/a/b")),
            ("/usr/lib/git-core/git-credential-store --file=/a", Some("/a")),
            ("store", None),
            ("cache --file /a", None),
            ("", None),
        ] {
            assert_eq!(value_of(value, "store", "--file").as_deref(), file, "{value}");
        }
    }
}
