//! What a sandbox needs to reach the door, and nothing else: gh's two files, and variables for git and gh.
//!
//! Nothing is written or printed before all of it is known to be usable. The bearer is in `hosts.yml` alone; in a
//! variable only where no file can be.

mod door;
mod format;
mod settings;
mod variables;

use std::io;
use std::path::{Path, PathBuf};

use gitdoor_proto::bearer::InvalidBearer;

pub(crate) use door::{Door, is_forge};
pub(crate) use settings::{CONFIG, HOSTS, Settings, replace};
pub(crate) use variables::{CREDENTIALS, EDITOR, FORGE, OURS, Variables, WAYS};

use crate::args::{EnvArgs, Format};
use crate::failure::Failure;
use crate::{bearer, output};

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvError {
    /// A run's own part without the run.
    #[error("--bearer-file: the file with the run's bearer is needed, but for --part creation")]
    NoBearerFile,
    /// A file that cannot be read.
    #[error("{flag} {}: {why}", .path.display())]
    Unreadable {
        /// Which flag named it.
        flag: &'static str,
        path: PathBuf,
        #[source]
        why: io::Error,
    },
    /// A file that holds something else.
    #[error("--bearer-file {}: {why}, on one line and alone", .path.display())]
    NoBearer {
        path: PathBuf,
        #[source]
        why: InvalidBearer,
    },
    /// A file without authorities.
    #[error("--ca {}: certificates in PEM are needed", .0.display())]
    NoCertificate(PathBuf),
    /// A path that cannot stand in a variable.
    #[error("{flag} {path:?}: a path in UTF-8 without a line break is needed, since it goes into a variable")]
    Path {
        /// Which flag named it.
        flag: &'static str,
        path: PathBuf,
    },
    /// A folder that others may read.
    #[error("--config-dir {}: others may look into it; a folder of mode 0700, or none yet, is needed", .0.display())]
    Open(PathBuf),
    /// A folder with somebody else's settings.
    #[error("--config-dir {}: {file} there is not of `gitdoor env`, and is left as it is; give another folder", .path.display())]
    Foreign { path: PathBuf, file: &'static str },
    /// A folder or file that cannot be written.
    #[error("--config-dir {}: {why}", .path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        why: io::Error,
    },
}

impl EnvError {
    /// 2 for what is missing at the command line, 64 for what is there and cannot be used, 1 for the rest.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoBearerFile => 2,
            Self::Unreadable { .. }
            | Self::NoBearer { .. }
            | Self::NoCertificate(_)
            | Self::Path { .. }
            | Self::Open(_)
            | Self::Foreign { .. } => 64,
            Self::Unwritable { .. } => 1,
        }
    }
}

/// Writes the files and prints the variables.
pub(crate) fn perform(args: EnvArgs) -> Result<(), Failure> {
    let EnvArgs { host, bearer_file, repository, format, config_dir, ca, variables_only, part } = args;
    let ca = ca.as_deref().map(authorities).transpose()?;
    let mut variables = Variables::default();
    let mut settings = None;
    if part.has_creation() {
        variables.creation(&host, ca.as_deref(), variables_only);
    }
    if part.has_command() {
        let file = bearer_file.ok_or(EnvError::NoBearerFile)?;
        let bearer = bearer::read(&file)?;
        if variables_only {
            variables.bearer(&bearer);
        } else {
            let folder = Settings::at(&config_dir.unwrap_or_else(|| beside(&file)))?;
            variables.config_dir(folder.text());
            folder.write(&host, &bearer)?;
            settings = Some(folder);
        }
        if let Some(repository) = repository {
            variables.repository(&host, &repository);
        }
    }
    variables.unset_others();
    let text = match format {
        Format::Sh => {
            variables.unset_authorities();
            format::sh(&variables)
        }
        Format::Json => format::json(&variables, settings.as_ref()),
        Format::Docker => format::docker(&variables),
        Format::Kubernetes => format::kubernetes(&variables, settings.as_ref()),
    };
    output::write(text.as_bytes())?;
    remark(&host, settings.as_ref(), variables_only, format);
    Ok(())
}

/// What whoever wires a sandbox should know, on standard error.
fn remark(host: &Door, settings: Option<&Settings>, variables_only: bool, format: Format) {
    if host.has_port() {
        output::note(
            "gh drops the port of a remote: it finds no clone of this door, and a newer one not its credential \
             either. git works; for gh, serve the door on port 443",
        );
    }
    if variables_only {
        output::note(
            "from GH_ENTERPRISE_TOKEN, gh hands the bearer to every host but GitHub's that it is asked for, and every \
             program in the sandbox has it in its environment. With files (without --variables-only) it goes to \
             the door alone",
        );
    }
    let Some(settings) = settings else { return };
    let folder = settings.text();
    match format {
        Format::Docker => {
            output::note(&format!("add --volume {folder}:{folder}:ro, and --user for who may read that folder"));
        }
        Format::Kubernetes => output::note(&format!(
            "make the Secret: kubectl create secret generic {} --from-file={folder}/hosts.yml \
             --from-file={folder}/config.yml",
            format::SECRET
        )),
        Format::Sh | Format::Json => output::note(&format!("the bearer is in {folder}/hosts.yml")),
    }
}

/// The folder that is taken where none is named.
fn beside(bearer_file: &Path) -> PathBuf {
    let mut folder = bearer_file.as_os_str().to_owned();
    folder.push(".gh");
    folder.into()
}

/// The file of authorities by its full name.
fn authorities(path: &Path) -> Result<String, EnvError> {
    const FLAG: &str = "--ca";
    let unreadable = |why| EnvError::Unreadable { flag: FLAG, path: path.to_owned(), why };
    let full = path.canonicalize().map_err(unreadable)?;
    std::fs::File::open(&full).map_err(unreadable)?;
    as_value(FLAG, full)
}

/// A path as a variable's value.
fn as_value(flag: &'static str, path: PathBuf) -> Result<String, EnvError> {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => Ok(text.to_owned()),
        Some(_) | None => Err(EnvError::Path { flag, path }),
    }
}
