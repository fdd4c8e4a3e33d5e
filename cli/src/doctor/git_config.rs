//! git's settings at every level: system, global, of each repository and its worktrees, and of the command.
//!
//! git itself reads them, so that what is included is seen, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::command::{self, Unanswered};
use super::surroundings::Surroundings;
use super::{Findings, Kind, shapes, url};

/// Variables by which git has settings of no file, or another file in the place of the user's.
const VARIABLES: [&str; 3] = ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL"];
/// Most repositories whose settings are read.
const REPOSITORIES: usize = 2000;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// The file; none for what is in the environment or in an argument.
    pub(super) file: Option<PathBuf>,
    pub(super) key: String,
    pub(super) value: String,
}

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    /// What git obeys here.
    pub(super) in_force: Vec<Setting>,
    /// What it would obey without the variables of this environment.
    pub(super) kept_out: Vec<Setting>,
    /// What could not be read.
    pub(super) unread: Vec<String>,
}

/// Reads them all.
pub(super) fn read(surroundings: &Surroundings) -> Read {
    let mut read = Read::default();
    let homes = surroundings.homes().iter().map(|home| (of_home(surroundings, home), home));
    let repositories = surroundings.workspaces().iter().map(|folder| (list(folder), folder));
    let levels = homes.chain(repositories).flat_map(|(command, place)| {
        let without = without_variables(surroundings, &command).map(|command| (command, place, false));
        [(command, place, true)].into_iter().chain(without)
    });
    let files = surroundings.tree().configs();
    let alone = files.iter().take(REPOSITORIES).map(|file| (of_file(file), file, true));
    for (command, place, is_in_force) in levels.chain(alone) {
        let settings = if is_in_force { &mut read.in_force } else { &mut read.kept_out };
        match command::run(command, b"") {
            Ok(printed) => settings.extend(parse(&printed, place)),
            Err(Unanswered::Missing) => {
                read.unread.push("git cannot be run: its settings and its helpers were not looked at".to_owned());
                return read;
            }
            Err(Unanswered::Failed | Unanswered::Late) => {
                read.unread.push(format!("{}: git cannot read the settings there", place.display()));
            }
        }
    }
    if files.len() > REPOSITORIES {
        read.unread.push(format!("of {} files with git's settings, {REPOSITORIES} were read", files.len()));
    }
    read
}

/// A command of git's without the settings that variables bring, where there are some: those of `gitdoor env` keep helpers
/// and files out, and any program can leave them out.
pub(super) fn without_variables(surroundings: &Surroundings, command: &Command) -> Option<Command> {
    VARIABLES.iter().find(|name| surroundings.variable(name).is_some())?;
    let mut without = Command::new(command.get_program());
    without.args(command.get_args());
    command.get_current_dir().map(|folder| without.current_dir(folder));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => without.env(name, value),
            None => without.env_remove(name),
        };
    }
    for name in VARIABLES {
        without.env_remove(name);
    }
    Some(without)
}

/// All levels, as they are in a folder.
fn list(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["config", "--list", "-z", "--show-origin"]);
    command
}

fn of_home(surroundings: &Surroundings, home: &Path) -> Command {
    let mut command = list(home);
    if surroundings.variable("HOME").map(Path::new) != Some(home) {
        command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("GIT_CONFIG_GLOBAL");
    }
    command
}

/// One file, whoever its repository belongs to.
fn of_file(file: &Path) -> Command {
    let mut command = Command::new("git");
    command.args(["config", "--list", "-z", "--show-origin", "--includes", "--file"]).arg(file);
    command
}

/// Reads `origin NUL key LF value NUL`, over and over; origins are relative to where git ran.
fn parse(printed: &[u8], place: &Path) -> Vec<Setting> {
    let fields: Vec<_> = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let pairs = fields.chunks_exact(2);
    let setting = |pair: &[std::borrow::Cow<'_, str>]| {
        let [origin, setting] = pair else { return None };
        let (key, value) = setting.split_once('\n').unwrap_or((setting, ""));
        let file = origin.strip_prefix("file:").map(|file| located(file.trim_matches('"'), place));
        Some(Setting { file, key: key.to_owned(), value: value.to_owned() })
    };
    pairs.filter_map(setting).collect()
}

/// A repository's own file is named from its top, which may be above where git ran.
fn located(file: &str, place: &Path) -> PathBuf {
    let above = place.ancestors().map(|folder| folder.join(file));
    above.into_iter().find(|path| path.is_file()).unwrap_or_else(|| place.join(file))
}

/// Looks at each setting.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for setting in surroundings.settings() {
        let Some(kind) = judge(&setting.key, &setting.value) else { continue };
        let key = shown(&setting.key);
        match &setting.file {
            Some(file) => findings.add_in(kind, file, &key),
            None => findings.add(kind, format!("git configuration of the command: {key}")),
        }
    }
}

/// The credential in a setting, if there is one.
pub(super) fn judge(key: &str, value: &str) -> Option<Kind> {
    let name = key.rsplit('.').next();
    if name == Some("extraheader") {
        return is_credential(value).then_some(Kind::Header);
    }
    // A proxy's password opens the proxy.
    if name == Some("proxy") {
        return None;
    }
    if subsection(key).into_iter().chain([value]).any(|url| url::credential_of(url).is_some()) {
        return Some(Kind::UrlPassword);
    }
    shapes::find(value.as_bytes()).into_iter().chain(shapes::find(key.as_bytes())).next()
}

/// Whether a header has a credential in it that is no run's bearer.
fn is_credential(header: &str) -> bool {
    let Some((name, value)) = header.split_once(':') else { return false };
    let value = value.trim();
    if !["authorization", "cookie", "private-token"].iter().any(|known| name.trim().eq_ignore_ascii_case(known)) {
        return !shapes::find(value.as_bytes()).is_empty();
    }
    let (scheme, credential) = value.split_once(' ').unwrap_or(("", value));
    let decoded = STANDARD.decode(credential.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let basic =
        decoded.as_deref().and_then(|pair| pair.split_once(':')).filter(|_| scheme.eq_ignore_ascii_case("basic"));
    let credential = basic.map_or(credential.trim(), |(_user, password)| password);
    !credential.is_empty() && !shapes::is_bearer(credential)
}

/// What a key has between its section and its name.
pub(super) fn subsection(key: &str) -> Option<&str> {
    let (_section, rest) = key.split_once('.')?;
    rest.rsplit_once('.').map(|(subsection, _name)| subsection)
}

/// A key without what is secret in it.
pub(super) fn shown(key: &str) -> String {
    match subsection(key).zip(key.split('.').next()).zip(key.rsplit('.').next()) {
        Some(((url, section), name)) if url::credential_of(url).is_some() => format!("{section}.***.{name}"),
        Some(_) | None if shapes::find(key.as_bytes()).is_empty() => key.to_owned(),
        Some(((_, section), name)) => format!("{section}.***.{name}"),
        None => "***".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[test]
    fn what_git_lists_is_read_whole() {
        let printed = b"file:.git/config\0remote.origin.url\nhttps://h/a\nb\0file:/etc/gitconfig\0core.bare\0\
            command line:\0a.b\n\0";
        let setting = |file: Option<&str>, key: &str, value: &str| Setting {
            file: file.map(PathBuf::from),
            key: key.into(),
            value: value.into(),
        };
        let expected = [
            setting(Some("/w/.git/config"), "remote.origin.url", "https://h/a\nb"),
            setting(Some("/etc/gitconfig"), "core.bare", ""),
            setting(None, "a.b", ""),
        ];
        assert_eq!(parse(printed, Path::new("/w")), expected);
        assert_eq!(parse(b"", Path::new("/w")), []);
    }

    #[test]
    fn a_setting_is_judged_by_what_it_gives_to_a_server() {
        let basic = |password: &str| format!("AUTHORIZATION: basic {}", STANDARD.encode(format!("x:{password}")));
        for (key, value, kind) in [
            ("remote.origin.url", "https://u:p@github.com/a/b", Some(Kind::UrlPassword)),
            ("url.https://u:p@github.com/.insteadof", "https://github.com/", Some(Kind::UrlPassword)),
            ("http.https://github.com/.extraheader", &basic("secret"), Some(Kind::Header)),
            ("http.extraheader", "Authorization: Bearer x", Some(Kind::Header)),
            ("http.extraheader", &format!("X-Any: {TOKEN}"), Some(Kind::Header)),
            ("alias.x", &format!("!curl -H 'Authorization: token {TOKEN}'"), Some(Kind::PersonalToken)),
            ("http.extraheader", "", None),
            ("http.extraheader", "X-Trace: 1", None),
            ("http.extraheader", &basic(BEARER), None),
            ("http.extraheader", &format!("Authorization: Bearer {BEARER}"), None),
            ("remote.origin.url", "https://github.com/a/b", None),
            ("remote.origin.url", &format!("https://x:{BEARER}@git.example.com/a/b"), None),
            ("http.proxy", "http://u:p@proxy:3128", None),
            ("user.email", "a@b", None),
        ] {
            assert_eq!(judge(key, value), kind, "{key} {value}");
        }
    }

    #[test]
    fn a_key_is_shown_without_the_secret_in_it() {
        for (key, expected) in [
            ("remote.origin.url", "remote.origin.url"),
            ("url.https://github.com/.insteadof", "url.https://github.com/.insteadof"),
            ("url.https://u:p@github.com/.insteadof", "url.***.insteadof"),
            (&format!("remote.{TOKEN}.url"), "remote.***.url"),
        ] {
            assert_eq!(shown(key), expected);
        }
    }
}
