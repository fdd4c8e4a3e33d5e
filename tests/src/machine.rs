//! A machine with several users. Its `/etc`, `/srv`, `/root` and `/var`, its users and its processes are the test's own:
//! each of its scripts runs in namespaces where the machine's folders are in the place of the real ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::client::{Client, Output, Transcript};
use crate::github::search_path;

/// As root; and as anybody who has subordinate ids.
const WAYS: [&[&str]; 2] = [
    &["--mount", "--pid", "--mount-proc", "--kill-child"],
    &["--user", "--map-root-user", "--map-auto", "--mount", "--pid", "--mount-proc", "--kill-child"],
];

/// The first of them that works here.
static WAY: LazyLock<Option<&[&str]>> = LazyLock::new(|| {
    let probe = "mount -t tmpfs tmpfs /mnt && setpriv --reuid 61000 --regid 61000 --clear-groups true";
    WAYS.into_iter().find(|way| {
        let mut unshare = Command::new("unshare");
        unshare.args(*way).args(["sh", "-c", probe]);
        unshare.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    })
});

/// What a system needs of its settings to run programs and to have users. No git settings, and nobody's password.
const SETTINGS: [&str; 10] = [
    "passwd",
    "group",
    "login.defs",
    "nsswitch.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
];

/// Users that are on no machine.
const USERS: &str = "\nUID_MIN 61001\nUID_MAX 61099\nGID_MIN 61001\nGID_MAX 61099\n";

/// Enters the machine: `machine FOLDER PROGRAM USER SCRIPT`.
const ENTER: &str = r#"set -eu
cd "$1"
for place in etc srv root mnt; do mount --bind "$place" "/$place"; done
mount -t tmpfs tmpfs /var
mount --bind "$2" /mnt/program
exec /mnt/as "$3" "$4"
"#;

/// Runs a script as a user who knows nothing but their home: `as USER SCRIPT`.
const AS: &str = r#"#!/bin/sh
set -eu
home=$(getent passwd "$1" | cut -d: -f6)
knows=user
change="setpriv --reuid=$1 --regid=$1 --init-groups"
if [ "$1" = root ]; then knows=root change=; fi
exec $change env -i HOME="$home" USER="$1" PATH="$PATH" LC_ALL=C GIT_CONFIG_SYSTEM=/etc/gitconfig \
    sh -euc ". /mnt/$knows.env; cd; $2"
"#;

/// The machine.
pub struct Machine {
    folder: TempDir,
    program: PathBuf,
    client: Client,
}

impl Machine {
    /// A machine on which the program is `gitdoor`; nothing where the kernel lets nobody make one.
    pub(crate) fn new(program: &Path, transcript: Transcript) -> Option<Self> {
        WAY.as_ref()?;
        let folder = tempfile::Builder::new().prefix("gitdoor-machine-").tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["etc", "srv", "root", "mnt"] {
            fs::create_dir(path(name)).expect("a folder");
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        for name in SETTINGS.map(|name| Path::new("/etc").join(name)).iter().filter(|path| path.exists()) {
            let copied = Command::new("cp").arg("-a").arg(name).arg(path("etc")).status();
            assert!(copied.is_ok_and(|status| status.success()), "{}", name.display());
        }
        let limits = fs::read_to_string(path("etc/login.defs")).unwrap_or_default();
        let limits = limits.lines().filter(|line| !line.starts_with("UID_") && !line.starts_with("GID_"));
        fs::write(path("etc/login.defs"), limits.collect::<Vec<_>>().join("\n") + USERS).expect("a file");
        fs::write(path("mnt/program"), "").expect("a file");
        let machine =
            Self { client: Client::new(path("outside"), transcript), folder, program: program.to_owned() };
        for (name, script) in [("as", AS), ("gitdoor", "#!/bin/sh\nexec /mnt/program __gitdoor \"$@\"\n")] {
            machine.write(&format!("/mnt/{name}"), script);
            fs::set_permissions(machine.path(&format!("/mnt/{name}")), fs::Permissions::from_mode(0o755))
                .expect("a mode");
        }
        machine.knows("root", &[]);
        machine.knows("user", &[]);
        Some(machine)
    }

    /// Gives `root`, or each other `user`, these variables.
    pub(crate) fn knows(&self, who: &str, variables: &[(&str, String)]) {
        let lines = variables.iter().map(|(name, value)| format!("export {name}='{value}'\n"));
        self.write(&format!("/mnt/{who}.env"), &lines.collect::<String>());
    }

    /// Writes a file, which everybody on the machine may read.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
    }

    /// Where a file of the machine's is to be found from outside.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// The folder in which all its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script as a user of the machine. Root's may run others' with `as USER SCRIPT`. What is still running when
    /// it ends, ends with it.
    pub async fn run(&self, user: &str, script: &str) -> Output {
        let (folder, program) = (self.folder.path().display().to_string(), self.program.display().to_string());
        let way = WAY.unwrap_or_default();
        let arguments = [way, &["sh", "-c", ENTER, "machine", &folder, &program, user, script]].concat();
        let path = format!("/mnt:/usr/sbin:/sbin:{}", search_path().display());
        self.client.clone().env("PATH", path).run(Path::new("unshare"), &arguments, b"").await
    }
}
