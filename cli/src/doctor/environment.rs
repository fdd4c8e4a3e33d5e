//! The environment of this program, which is that of the workspace's shell.

use std::collections::BTreeSet;

use super::surroundings::Surroundings;
use super::{Findings, Kind, shapes};
use crate::env::CREDENTIALS;

/// Looks at each variable.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for (name, value) in surroundings.environment() {
        for kind in judge(name, value.as_bytes()) {
            findings.add(kind, format!("environment: {name}"));
        }
    }
}

/// The credentials of one variable: by its value's shape, or by its name.
pub(super) fn judge(name: &str, value: &[u8]) -> BTreeSet<Kind> {
    let mut kinds = shapes::find(value);
    let text = str::from_utf8(value).unwrap_or_default().trim();
    let is_empty = value.iter().all(u8::is_ascii_whitespace);
    if kinds.is_empty() && CREDENTIALS.contains(&name) && !is_empty && !shapes::is_bearer(text) {
        kinds.insert(Kind::Variable);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_judged_by_its_value_and_by_its_name() {
        let token = b"gho_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
        let bearer = b"sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        for (name, value, kind) in [
            ("ANY", token.as_slice(), Some(Kind::OauthToken)),
            ("GH_TOKEN", token, Some(Kind::OauthToken)),
            ("GH_TOKEN", b"0123456789abcdef", Some(Kind::Variable)),
            ("GITHUB_TOKEN", b"\xff", Some(Kind::Variable)),
            ("GH_TOKEN", b"", None),
            ("GH_ENTERPRISE_TOKEN", bearer, None),
            ("ANY", b"0123456789abcdef", None),
        ] {
            assert_eq!(judge(name, value), kind.into_iter().collect(), "{name}");
        }
    }
}
