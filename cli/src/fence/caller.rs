//! Who runs this: the variables, and what they and habit say of where credentials and private sockets lie.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::mounts::{Mounts, What};
use super::{FenceError, sockets};
use crate::env::{CREDENTIALS, OURS, WAYS};

/// Where programs of this user's leave sockets and files for each other, and where other disks are.
const COMMON: [&str; 5] = ["tmp", "var/tmp", "run", "mnt", "media"];

/// Variables that name a place with credentials, where it is not the usual one below home. Inside it is the usual one.
const PLACES: [&str; 22] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "GH_CONFIG_DIR",
    "GLAB_CONFIG_DIR",
    "GIT_CONFIG_GLOBAL",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "NETRC",
    "DOCKER_CONFIG",
    "NPM_CONFIG_USERCONFIG",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "XAUTHORITY",
];

/// Variables that lead to other things that are hidden, or tell git of another repository.
const ELSEWHERE: [&str; 20] = [
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "GNOME_KEYRING_CONTROL",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "WSL_INTEROP",
    "TMUX",
    "STY",
    "TMPDIR",
    "TMP",
    "TEMP",
    "VSCODE_IPC_HOOK_CLI",
    "GIT_CONFIG_COUNT",
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_SSH_COMMAND",
];

/// Who runs this.
#[derive(Debug, Clone)]
pub struct Caller {
    variables: Vec<(OsString, OsString)>,
    /// Where the system says that this user's home is, which ssh goes by.
    account_home: Option<PathBuf>,
    /// The machine, from which common places and sockets are counted: `/`.
    machine: PathBuf,
}

impl Caller {
    /// Who runs this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let user = rustix::process::getuid().as_raw().to_string();
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let account = accounts.lines().map(|line| line.split(':')).find_map(|mut fields| {
            (fields.nth(2) == Some(user.as_str())).then(|| fields.nth(2).map(PathBuf::from)).flatten()
        });
        Self { account_home: account, ..Self::with(std::env::vars_os().collect(), "/".into()) }
    }

    /// Somebody with these variables, whose machine is what is below a folder.
    #[must_use]
    pub fn with(variables: Vec<(OsString, OsString)>, machine: PathBuf) -> Self {
        Self { variables, account_home: None, machine }
    }

    /// A variable that is not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let set = self.variables.iter().find(|(known, value)| known == name && !value.is_empty());
        set.map(|(_, value)| value.as_os_str())
    }

    /// Every variable.
    pub(super) fn all(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Those that go in.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let stays_out = |name: &str| {
            name.starts_with(OURS)
                || CREDENTIALS.iter().chain(&WAYS).chain(&PLACES).chain(&ELSEWHERE).any(|known| *known == name)
        };
        self.all().filter(move |(name, _)| name.to_str().is_none_or(|name| !stays_out(name)))
    }

    /// The homes, by their full names; the first is HOME.
    pub(super) fn homes(&self) -> Result<Vec<PathBuf>, FenceError> {
        let is_home = |home: &PathBuf| home.is_dir() && home.parent().is_some();
        let named = self.variable("HOME").map(Path::new).filter(|home| home.is_absolute());
        let home = named.and_then(|home| home.canonicalize().ok()).filter(is_home).ok_or(FenceError::Home)?;
        let account = self.account_home.as_ref().and_then(|home| home.canonicalize().ok());
        let other = account.filter(|account| is_home(account) && *account != home);
        Ok([home].into_iter().chain(other).collect())
    }

    /// The common places, by their full names.
    pub(super) fn common(&self) -> Vec<PathBuf> {
        COMMON.iter().filter_map(|place| self.machine.join(place).canonicalize().ok()).collect()
    }

    /// The sockets on this machine that somebody listens at, by their files.
    pub(super) fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        sockets::bound().into_iter().filter(|socket| socket.starts_with(&self.machine))
    }

    /// The places that nothing is to be seen of, by their full names.
    pub(super) fn closed(&self, homes: &[PathBuf]) -> Vec<PathBuf> {
        let named = PLACES.iter().filter_map(|name| self.variable(name)).flat_map(std::env::split_paths);
        // Programs are there, too.
        let cargo = self.variable("CARGO_HOME").into_iter();
        let cargo =
            cargo.flat_map(|home| ["credentials.toml", "credentials"].map(|file| Path::new(home).join(file)));
        let places = self.common().into_iter().chain(named).chain(cargo);
        let full = places.filter(|place| place.is_absolute()).filter_map(|place| place.canonicalize().ok());
        // Many a variable names /dev/null.
        let full = full.filter(|place| !is_of_kernel(place));
        // A variable that names the root would hide the machine.
        full.filter(|place| place.parent().is_some()).chain(homes.iter().cloned()).collect()
    }

    /// The first program of this name on PATH, by its full name.
    pub(crate) fn find(&self, name: &OsStr) -> Option<PathBuf> {
        self.path().map(|folder| folder.join(name)).find(|program| program.is_file())?.canonicalize().ok()
    }

    /// Where it is, and what is there, which may be a link.
    pub(super) fn places(&self, name: &OsStr) -> impl Iterator<Item = PathBuf> {
        let named = self.path().map(|folder| folder.join(name)).find(|program| program.is_file());
        let folder = named.as_ref().and_then(|program| program.parent()?.canonicalize().ok());
        folder
            .map(|folder| folder.join(name))
            .into_iter()
            .chain(named.and_then(|program| program.canonicalize().ok()))
    }

    fn path(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.variable("PATH").into_iter().flat_map(std::env::split_paths);
        folders.filter(|folder| folder.is_absolute())
    }

    /// What is needed to run what is on PATH, where it would be hidden: its folders, and what the command is a link to.
    pub(super) fn programs(&self, hidden: &Mounts, homes: &[PathBuf], command: Option<&OsString>) -> Vec<PathBuf> {
        let is_in_home = |place: &PathBuf| homes.iter().any(|home| place != home && place.starts_with(home));
        let folders = self.path().filter_map(|folder| folder.canonicalize().ok()).filter(is_in_home);
        let command = command.and_then(|command| match Path::new(command).components().count() {
            1 => self.find(command),
            _ => Path::new(command).canonicalize().ok(),
        });
        let command = command.filter(|program| hidden.at(program) == Some(What::Empty)).map(with_modules);
        folders.chain(command).collect()
    }
}

/// Whether it is in `/proc` or `/dev`: the fence has its own.
pub(super) fn is_of_kernel(place: &Path) -> bool {
    (place.starts_with("/proc") || place.starts_with("/dev")) && !is_memory(place)
}

/// A folder of files in `/dev/shm`.
fn is_memory(place: &Path) -> bool {
    place.parent().is_some_and(|folder| folder.starts_with("/dev/shm"))
}

/// A script of npm's is nothing without the modules beside it.
fn with_modules(program: PathBuf) -> PathBuf {
    let modules = program.ancestors().filter(|folder| folder.file_name() == Some("node_modules".as_ref())).last();
    modules.map(Path::to_owned).unwrap_or(program)
}

/// What of the hidden places every program needs: how names are looked up, and where NixOS has its programs.
pub(super) fn needed() -> Vec<PathBuf> {
    let run = Path::new("/run");
    let resolver = fs::canonicalize("/etc/resolv.conf").ok().filter(|file| file.starts_with(run));
    let folder = resolver.map(|file| match file.parent() {
        Some(folder) if folder != run => folder.to_owned(),
        Some(_) | None => file,
    });
    let nix =
        ["/run/current-system", "/run/opengl-driver"].into_iter().map(PathBuf::from).filter(|link| link.exists());
    folder.into_iter().chain(nix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(variables: &[(&str, &str)]) -> Caller {
        Caller::with(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(), "/".into())
    }

    #[test]
    fn what_leads_to_a_credential_does_not_go_in() {
        let caller = caller(&[
            ("PATH", "/bin"),
            ("GH_TOKEN", "x"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1/bus"),
            ("GITDOOR_GITHUB_APP_KEY", "/etc/app.pem"),
            ("ANTHROPIC_API_KEY", "y"),
        ]);
        let names: Vec<_> = caller.variables().map(|(name, _)| name).collect();
        assert_eq!(names, ["PATH", "ANTHROPIC_API_KEY"]);
    }

    #[test]
    fn a_home_is_a_folder_that_is_not_everything() {
        for home in ["", "/", "relative", "/nonexistent"] {
            assert!(matches!(caller(&[("HOME", home)]).homes(), Err(FenceError::Home)), "{home}");
        }
        assert_eq!(caller(&[("HOME", "/usr/../usr")]).homes().unwrap(), [PathBuf::from("/usr")]);
    }

    #[test]
    fn a_script_of_npms_comes_with_its_modules() {
        let script = PathBuf::from("/h/lib/node_modules/@a/b/node_modules/c/cli.js");
        assert_eq!(with_modules(script), Path::new("/h/lib/node_modules"));
        assert_eq!(with_modules("/h/bin/claude".into()), Path::new("/h/bin/claude"));
    }
}
