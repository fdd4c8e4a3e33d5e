//! The files in which gh, and hub, keep tokens, by host.

use std::path::PathBuf;

use super::shapes::is_bearer;
use super::surroundings::{Surroundings, text_of};
use super::{Findings, Kind};
use crate::env::HOSTS;

/// Looks into each.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for file in files(surroundings) {
        let Some(text) = text_of(&file) else { continue };
        for (host, token) in tokens(&text) {
            if !is_bearer(token) {
                findings.add_in(Kind::GhToken, &file, host);
            }
        }
    }
}

/// Where they are; hub, which was there before gh, has the same in a file of its own.
pub(super) fn files(surroundings: &Surroundings) -> Vec<PathBuf> {
    let named = surroundings.variable("GH_CONFIG_DIR").map(|folder| PathBuf::from(folder).join(HOSTS));
    let hub = surroundings.variable("HUB_CONFIG").map(PathBuf::from);
    let usual = ["gh/hosts.yml", "hub"].into_iter().flat_map(|name| surroundings.in_config(name));
    named.into_iter().chain(hub).chain(usual).collect()
}

/// The socket by which gh reaches every host, in its `config.yml`.
pub(super) fn socket(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("http_unix_socket:"))?.trim();
    let path = serde_json::from_str(value).unwrap_or_else(|_plain| value.trim_matches('\'').to_owned());
    (!path.is_empty()).then_some(path)
}

/// The hosts of a `hosts.yml`, each with its lines; what is before the first has no host.
pub(super) fn hosts(text: &str) -> Vec<(&str, &str)> {
    let mut hosts: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_key = !line.starts_with([' ', '\t', '#', '-', '\n', '\r']);
        match (hosts.last_mut(), is_key) {
            (None, _) | (Some(_), true) => {
                let name = if is_key { line.split(": ").next().unwrap_or_default() } else { "" };
                hosts.push((name.trim().trim_end_matches(':').trim_matches(['"', '\'']), at, at + line.len()));
            }
            (Some(last), false) => last.2 = at + line.len(),
        }
        at += line.len();
    }
    hosts.into_iter().filter_map(|(name, from, to)| Some((name, text.get(from..to)?))).collect()
}

/// The tokens, each with its host. A host may have several users.
pub(super) fn tokens(text: &str) -> Vec<(&str, &str)> {
    hosts(text)
        .into_iter()
        .flat_map(|(host, lines)| lines.split(['\n', '{', ',', '}']).map(move |part| (host, part)))
        .filter_map(|(host, part)| {
            let (_, token) = part.split_once("oauth_token:")?;
            let token = token.trim().trim_matches(['"', '\'']);
            (!token.is_empty()).then_some((host, token))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_found_with_its_host() {
        let text = "github.com:\n    users:\n        octo:\n            oauth_token: gho_1\n    oauth_token: 'gho_1'\n\
                    \"git.example.com\":\n    oauth_token: sbr_2\nghe.example: {user: x, oauth_token: y}\nempty:\n  oauth_token:\n";
        let expected =
            [("github.com", "gho_1"), ("github.com", "gho_1"), ("git.example.com", "sbr_2"), ("ghe.example", "y")];
        assert_eq!(tokens(text), expected);
        let hub = "---\ngithub.com:\n- user: octo\n  oauth_token: 0123abcd\n  protocol: https\n";
        assert_eq!(tokens(hub), [("github.com", "0123abcd")]);
        assert_eq!(tokens(""), []);
        assert_eq!(tokens("    oauth_token: x\n"), [("", "x")]);
    }

    #[test]
    fn a_socket_is_found_however_it_is_quoted() {
        for written in ["/run/x.sock", "\"/run/x.sock\"", "'/run/x.sock'"] {
            let text = format!("version: \"1\"\nhttp_unix_socket: {written}\nprompt: x\n");
            assert_eq!(socket(&text).as_deref(), Some("/run/x.sock"));
        }
        for none in ["", "version: \"1\"\n", "http_unix_socket:\n", "hosts:\n  http_unix_socket: /run/x\n"] {
            assert_eq!(socket(none), None);
        }
    }

    #[test]
    fn the_hosts_are_the_whole_text() {
        let text = "# a\na.example:\n    user: x\n\nb.example:\n    user: y\n";
        let hosts = hosts(text);
        assert_eq!(hosts.iter().map(|(_, lines)| *lines).collect::<String>(), text);
        assert_eq!(hosts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["", "a.example", "b.example"]);
    }
}
