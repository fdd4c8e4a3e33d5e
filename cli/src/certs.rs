//! `gitdoor certs`: a small certificate authority in a folder, and what it signs for a first deployment.
//!
//! A key is written with its mode from the first byte on, and no file is ever overwritten; a renewal puts a complete
//! pair in place of the old one.

mod folder;
mod make;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use time::{Date, Duration, OffsetDateTime};

use crate::args::{CertsArgs, Name};
use folder::Folder;
use make::Authority;

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertsError {
    /// The folder or a file in it.
    #[error("--out: {path}: {why}")]
    File {
        /// Which.
        path: String,
        /// What the system says.
        why: io::Error,
    },
    /// There is one already.
    #[error("--out: {0} is there already, and nothing is overwritten")]
    Exists(String),
    /// A name that no certificate can have.
    #[error("--control-host {0}: a name is a DNS name or an IP address")]
    Host(String),
    /// The folder's authority has ended, or is about to: what it signs ends with it.
    #[error("--renew: the authority {path} ends on {ends} (UTC), and what it signs would end within a day")]
    Ends {
        /// Its certificate.
        path: String,
        /// When.
        ends: Date,
    },
    /// No randomness for a name.
    #[error("the system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    /// The folder's authority is of no use.
    #[error(
        "--renew: {0} is not of an authority that can sign: a CA's certificate and its private key, both in PEM"
    )]
    Authority(String),
    /// A certificate could not be made.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// A time beyond what a certificate can say.
    #[error("--days, --ca-days: the certificate would end after the year 9999")]
    Time,
}

impl CertsError {
    /// 64: it parses and cannot be used; 1: it failed.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::File { .. }
            | Self::Exists(_)
            | Self::Host(_)
            | Self::Ends { .. }
            | Self::Authority(_)
            | Self::Time => 64,
            Self::Randomness(_) | Self::Make(_) => 1,
        }
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Exists(_) => Some(
                "another folder, or one certificate anew: `gitdoor certs --out FOLDER --renew NAME`, NAME one of \
                 control, dataplane, bot, ops, mirror",
            ),
            Self::Authority(_) => {
                Some("--renew needs ca.pem and ca.key, as `gitdoor certs --out FOLDER` made them")
            }
            Self::Ends { .. } => {
                Some("make all of them anew in another folder, by a new authority: `gitdoor certs --out FOLDER`")
            }
            Self::File { .. } | Self::Host(_) | Self::Randomness(_) | Self::Make(_) | Self::Time => None,
        }
    }
}

/// Makes the files; says which flag takes which.
pub(crate) fn perform(args: &CertsArgs) -> Result<String, CertsError> {
    match args.renew {
        Some(name) => renew(args, name),
        None => begin(args),
    }
}

fn begin(args: &CertsArgs) -> Result<String, CertsError> {
    let (authority, pair) = Authority::new(args.ca_days)?;
    // All are made before the first is written: a name that is no name leaves nothing behind.
    let mut files = vec![("ca", pair)];
    for name in Name::ALL {
        files.push((name.as_str(), authority.sign(name, &args.control_hosts, args.days)?));
    }
    let folder = Folder::make(&args.out)?;
    for (name, _) in &files {
        folder.vacant(name)?;
    }
    for (name, pair) in &files {
        folder.add(name, pair)?;
    }
    Ok(flags(folder.path()))
}

fn renew(args: &CertsArgs, name: Name) -> Result<String, CertsError> {
    let folder = Folder::open(&args.out)?;
    let authority = Authority::read(&folder)?;
    if authority.ends() < OffsetDateTime::now_utc() + Duration::DAY {
        let path = folder.file("ca", "pem").display().to_string();
        return Err(CertsError::Ends { path, ends: authority.ends().date() });
    }
    let mut hosts = args.control_hosts.clone();
    if name == Name::Control {
        // What clients reach control by stays.
        hosts.extend(make::hosts_in(&folder.read(name.as_str(), "pem")?));
    }
    let pair = authority.sign(name, &hosts, args.days)?;
    folder.replace(name.as_str(), &pair)?;
    let (shown, name, ends) = (folder.path().display(), name.as_str(), pair.ends.date());
    Ok(format!("{shown}/{name}.pem and {shown}/{name}.key are new, and good until {ends} (UTC)\n"))
}

fn flags(folder: &Path) -> String {
    let at = folder.display();
    let client = |name: &str| {
        format!("--control-tls-ca {at}/ca.pem --control-tls-cert {at}/{name}.pem --control-tls-key {at}/{name}.key")
    };
    let mut text = String::from("gitdoor-control");
    for side in ["runs", "gate"] {
        let (cert, key) = (format!("{at}/control.pem"), format!("{at}/control.key"));
        // Writing to a string does not fail.
        let _ = write!(
            text,
            " \\\n  --{side}-tls-cert {cert} --{side}-tls-key {key} --{side}-tls-client-ca {at}/ca.pem"
        );
    }
    let _ = write!(text, "\n\ngitdoor-dataplane --control https://HOST:GATE_PORT \\\n  {}", client("dataplane"));
    for (name, what) in [("bot", "register"), ("ops", "list")] {
        let _ = write!(text, "\n\ngitdoor run {what} --control https://HOST:RUNS_PORT \\\n  {}", client(name));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn args(out: &Path, renew: Option<Name>, hosts: &[&str]) -> CertsArgs {
        let control_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        CertsArgs { out: out.to_owned(), control_hosts, days: 365, ca_days: 3650, renew }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("certs");
        perform(&args(&out, None, &[])).unwrap();
        assert_eq!(mode(&out), 0o700);
        for name in ["ca", "control", "dataplane", "bot", "ops", "mirror"] {
            assert_eq!(mode(&out.join(format!("{name}.key"))), 0o600, "{name}");
            assert!(out.join(format!("{name}.pem")).exists(), "{name}");
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ops.key"), "mine").unwrap();
        let error = perform(&args(folder.path(), None, &[])).unwrap_err();
        assert!(matches!(&error, CertsError::Exists(path) if path.ends_with("ops.key")), "{error}");
        assert!(error.advice().unwrap().contains("--renew"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(folder.path().join("ops.key")).unwrap(), "mine");
    }

    #[test]
    fn a_name_that_is_no_name_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("certs");
        for host in ["a b", "", "*.x y", "https://control"] {
            let error = perform(&args(&out, None, &[host])).unwrap_err();
            assert!(matches!(error, CertsError::Host(_)), "{host}: {error}");
        }
        assert!(!out.exists());
    }

    #[test]
    fn a_renewal_changes_one_pair_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        perform(&args(folder.path(), None, &[])).unwrap();
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let (bot, ops) = (read("bot.pem"), read("ops.pem"));
        let key = read("bot.key");
        perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap();
        assert!(read("bot.pem") != bot && read("bot.key") != key && read("ops.pem") == ops);
        assert_eq!(mode(&folder.path().join("bot.key")), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 12);
    }

    #[test]
    fn a_renewal_that_fails_leaves_nothing_beside_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        perform(&args(folder.path(), None, &[])).unwrap();
        let pem = folder.path().join("bot.pem");
        fs::remove_file(&pem).unwrap();
        // Nothing can be moved in the place of a folder that is not empty.
        fs::create_dir_all(pem.join("x")).unwrap();
        let error = perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap_err();
        assert!(matches!(&error, CertsError::File { path, .. } if path.ends_with("bot.pem")), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 12);
    }

    #[test]
    fn a_renewal_by_an_authority_that_ends_within_a_day_is_refused_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        perform(&CertsArgs { ca_days: 1, ..args(folder.path(), None, &[]) }).unwrap();
        let before = fs::read(folder.path().join("bot.pem")).unwrap();
        let error = perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap_err();
        assert!(error.to_string().contains("within a day") && error.exit_code() == 64, "{error}");
        assert!(error.advice().unwrap().contains("new authority"));
        assert_eq!(fs::read(folder.path().join("bot.pem")).unwrap(), before);
    }

    #[test]
    fn a_renewal_says_when_the_new_certificate_ends() {
        let folder = tempfile::tempdir().unwrap();
        perform(&CertsArgs { ca_days: 30, ..args(folder.path(), None, &[]) }).unwrap();
        let ends = Authority::read(&Folder::open(folder.path()).unwrap()).unwrap().ends().date();
        let said = perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap();
        assert!(said.contains(&format!("good until {ends} (UTC)")), "no longer than its authority: {said}");
    }

    #[test]
    fn controls_names_outlive_a_renewal() {
        let folder = tempfile::tempdir().unwrap();
        perform(&args(folder.path(), None, &["control.example.com", "10.0.0.7"])).unwrap();
        perform(&args(folder.path(), Some(Name::Control), &["other.example.com"])).unwrap();
        let mut hosts = make::hosts_in(&fs::read_to_string(folder.path().join("control.pem")).unwrap());
        hosts.sort();
        let all = ["10.0.0.7", "127.0.0.1", "::1", "control.example.com", "localhost", "other.example.com"];
        assert_eq!(hosts, all);
    }

    #[test]
    fn a_renewal_without_an_authority_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let error = perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap_err();
        assert!(error.to_string().contains("ca.key"), "{error}");
        for (name, text) in [("ca.key", "hush"), ("ca.pem", "hush")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let error = perform(&args(folder.path(), Some(Name::Bot), &[])).unwrap_err();
        assert_eq!(error.exit_code(), 64);
        assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    }
}
