//! Takes away what older set-ups left: credentials in git's, gh's and curl's own files, and the credential cache.
//!
//! Whole files go only where nothing else was in them. Keys, variables and files of other programs are not touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::shapes::is_bearer;
use super::surroundings::Surroundings;
use super::{Kind, cache, command, gh, git_config, netrc, stores, url};
use crate::env::replace;

/// Removes what can be, and says what that was.
pub(super) fn perform(surroundings: &Surroundings) -> Vec<String> {
    let mut done = Vec::new();
    let files = |files: Vec<PathBuf>, step: fn(&str) -> String| files.into_iter().map(move |file| (file, step));
    let steps = files(stores::files(surroundings), without_passwords)
        .chain(files(netrc::files(surroundings), without_entries))
        .chain(files(gh::files(surroundings), without_hosts));
    for (file, step) in steps {
        done.extend(rewrite(&file, step));
    }
    for (file, user_infos) in in_git_config(surroundings) {
        done.extend(rewrite(&file, |text| without_headers(&without_user_infos(text, &user_infos))));
    }
    for socket in cache::sockets(surroundings).into_iter().filter(|socket| cache::answers(socket.clone())) {
        let mut exit = Command::new("git");
        exit.arg("credential-cache").arg("--socket").arg(&socket).arg("exit");
        if command::run(exit, b"").is_ok() {
            done.push(format!("{}: the credential cache was told to exit", socket.display()));
        }
    }
    done
}

/// Puts a changed text in a file's place, or removes a file that has none left. A link is followed, and stays.
fn rewrite(file: &Path, change: impl Fn(&str) -> String) -> Option<String> {
    let file = file.canonicalize().ok()?;
    let text = if file.is_file() { fs::read_to_string(&file).ok()? } else { return None };
    let changed = change(&text);
    if changed == text {
        return None;
    }
    if changed.trim().is_empty() {
        fs::remove_file(&file).ok()?;
        return Some(format!("{}: removed", file.display()));
    }
    let mode = fs::metadata(&file).ok()?.permissions().mode();
    replace(&file, &changed, mode & 0o777).ok()?;
    Some(format!("{}: its credentials were removed", file.display()))
}

/// A file of git's passwords without them.
fn without_passwords(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| url::credential_of(line.trim_end()).is_none()).collect()
}

/// A netrc without its entries for GitHub and for everybody.
fn without_entries(text: &str) -> String {
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    for entry in netrc::parse(text).iter().filter(|entry| entry.is_credential()) {
        kept.push_str(text.get(at..entry.span.start).unwrap_or_default());
        at = entry.span.end;
    }
    kept.push_str(text.get(at..).unwrap_or_default());
    kept
}

/// A `hosts.yml` without hosts that have a token of their own.
fn without_hosts(text: &str) -> String {
    let has_token = |lines: &str| gh::tokens(lines).iter().any(|(_, token)| !is_bearer(token));
    gh::hosts(text).into_iter().map(|(_, lines)| lines).filter(|lines| !has_token(lines)).collect()
}

/// The files with credentials of git's settings; for each, what stands before the `@` of its URLs.
fn in_git_config(surroundings: &Surroundings) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut files: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for setting in surroundings.settings() {
        let kind = git_config::judge(&setting.key, &setting.value);
        let (Some(file), Some(Kind::UrlPassword | Kind::Header)) = (&setting.file, kind) else { continue };
        let urls = git_config::subsection(&setting.key).into_iter().chain([setting.value.as_str()]);
        let user_infos = urls.filter_map(url::credential_of).map(str::to_owned);
        files.entry(file.clone()).or_default().extend(user_infos);
    }
    files
}

fn without_user_infos(text: &str, user_infos: &BTreeSet<String>) -> String {
    user_infos.iter().fold(text.to_owned(), |text, user_info| text.replace(&format!("://{user_info}@"), "://"))
}

/// Settings without the lines of headers that have a credential in them.
fn without_headers(text: &str) -> String {
    let is_header = |line: &&str| {
        let Some((name, value)) = line.split_once('=') else { return false };
        // The key may stand behind its section's name.
        let name = name.rsplit(']').next().unwrap_or_default().trim().to_ascii_lowercase();
        let value = value.trim().trim_matches('"');
        name == "extraheader" && git_config::judge("http.extraheader", value).is_some()
    };
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !is_header(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[test]
    fn passwords_go_and_the_bearer_stays() {
        let text = format!("https://u:p@github.com\nhttps://x:{BEARER}@git.example.com\n");
        assert_eq!(without_passwords(&text), format!("https://x:{BEARER}@git.example.com\n"));
        assert_eq!(without_passwords("https://u:p@github.com"), "");
    }

    #[test]
    fn entries_go_and_other_machines_stay() {
        let text = "machine a.example password 1\nmachine github.com password 2\nmachine b.example password 3\n";
        assert_eq!(without_entries(text), "machine a.example password 1\nmachine b.example password 3\n");
    }

    #[test]
    fn hosts_go_and_the_door_stays() {
        let door = format!("git.example.com:\n    oauth_token: {BEARER}\n");
        let text = format!("github.com:\n    user: x\n    oauth_token: gho_1\n{door}");
        assert_eq!(without_hosts(&text), door);
    }

    #[test]
    fn settings_lose_what_is_secret_and_no_more() {
        let text = "[remote \"origin\"]\n\turl = https://u:p@github.com/a/b\n\tfetch = +refs/*:refs/*\n\
                    [http]\n\textraHeader = \"Authorization: token x\"\n\textraHeader = X-Trace: 1\n";
        let without = without_headers(&without_user_infos(text, &["u:p".to_owned()].into()));
        assert_eq!(
            without,
            "[remote \"origin\"]\n\turl = https://github.com/a/b\n\tfetch = +refs/*:refs/*\n\
             [http]\n\textraHeader = X-Trace: 1\n"
        );
    }
}
