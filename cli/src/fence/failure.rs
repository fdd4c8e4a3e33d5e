//! Why there is no fence, or nothing was started behind it.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why there is no fence, or nothing was started behind it.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// No bubblewrap.
    #[error("bubblewrap is needed, and no bwrap is on PATH: install the distribution's package bubblewrap")]
    NoBwrap,
    /// The kernel says no.
    #[error("bwrap cannot make a fence here, for which user namespaces are needed{forbidden}: {0}", forbidden = Forbidden)]
    Namespaces(String),
    /// A program that is called bwrap.
    #[error("{} makes no fence: what it starts is in the namespaces of who starts it; bubblewrap's own bwrap is needed, first on PATH", .0.display())]
    NoFence(PathBuf),
    /// A processor that the filter is not written for.
    #[error("there is a fence for x86-64 and arm64 only")]
    Machine,
    /// The session's bus has no file.
    #[error(
        "DBUS_SESSION_BUS_ADDRESS is an abstract socket, which no fence hides on this kernel, and the key ring answers \
         there: Linux 6.12 with Landlock is needed, or a bus that listens at a path"
    )]
    SessionBus,
    /// This program's own file.
    #[error("this program cannot find its own file: {0}")]
    Program(#[source] io::Error),
    /// No home to hide.
    #[error(
        "HOME: the full name of your home is needed, a folder other than /, since the fence hides what is in it"
    )]
    Home,
    /// What is not there.
    #[error("{flag} {}: {why}", .path.display())]
    Missing {
        /// Which flag named it.
        flag: &'static str,
        /// What.
        path: PathBuf,
        /// Why it cannot be found.
        #[source]
        why: io::Error,
    },
    /// A folder with too much in it.
    #[error("{flag} {}: {} would be seen with it, which the fence is there to hide; name a folder in it", .path.display(), .place.display())]
    Wide {
        /// Which flag named it.
        flag: &'static str,
        /// What.
        path: PathBuf,
        /// What is in it.
        place: PathBuf,
    },
    /// A folder that holds what must be hidden.
    #[error("{flag} {}: {} is in it, and must not be seen; move either elsewhere", .path.display(), .hidden.display())]
    Holds {
        /// Which flag named it.
        flag: &'static str,
        /// What.
        path: PathBuf,
        /// What must be hidden.
        hidden: PathBuf,
    },
    /// A place in what the fence has of its own.
    #[error("{flag} {}: the fence has a /proc and a /dev of its own; a place outside of both is needed", .path.display())]
    Kernel {
        /// Which flag named it.
        flag: &'static str,
        /// What.
        path: PathBuf,
    },
    /// A part of a repository.
    #[error("the working folder {} is inside of the repository {}: start at its top, since git needs all of it", .work.display(), .top.display())]
    Part {
        /// The working folder.
        work: PathBuf,
        /// Where its repository begins.
        top: PathBuf,
    },
    /// A worktree without the way back.
    #[error(
        "{} leads to {}, which does not lead back as a worktree's does; --share that folder, if it is yours", .file.display(),
        .leads.display()
    )]
    Stray {
        /// The file.
        file: PathBuf,
        /// The folder.
        leads: PathBuf,
    },
    /// A link that would lead git elsewhere.
    #[error(
        "{} is a symbolic link, with which the command could exchange what your git runs or obeys: put what it leads to in \
         its place, or start with --writable-git-config", .0.display()
    )]
    Link(PathBuf),
    /// The fence itself could be exchanged.
    #[error("{} could be exchanged by the command, which may write there, and is run outside: another of its name is needed, first on PATH", .0.display())]
    Writable(PathBuf),
    /// No outcome of the examination.
    #[error("what is inside of the fence could not be examined: {0}")]
    Unexamined(String),
    /// Inside: what must not be left open could not be closed.
    #[error("the fence could not be closed: {0}")]
    Open(String),
    /// Inside: the command.
    #[error("{}: {why}", Path::new(.program).display())]
    Command {
        /// What was to be run.
        program: OsString,
        /// Why it was not.
        #[source]
        why: io::Error,
    },
}

impl FenceError {
    /// What a shell says of a command: 127 for one that is not there, 126 for one that cannot be run; 64 for the rest.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Command { why, .. } if why.kind() == ErrorKind::NotFound => 127,
            Self::Command { .. } => 126,
            Self::Unexamined(_) | Self::Open(_) => 1,
            Self::NoBwrap
            | Self::Namespaces(_)
            | Self::NoFence(_)
            | Self::Machine
            | Self::SessionBus
            | Self::Program(_)
            | Self::Home
            | Self::Missing { .. }
            | Self::Wide { .. }
            | Self::Holds { .. }
            | Self::Kernel { .. }
            | Self::Part { .. }
            | Self::Stray { .. }
            | Self::Link(_)
            | Self::Writable(_) => 64,
        }
    }

    /// What to do about it, where the words do not say.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NoBwrap | Self::Namespaces(_) | Self::Machine | Self::SessionBus => Some(
                "in a container or a virtual machine that has no credential, --no-isolation runs the command without a \
                 fence: with your user id, it can read every file of yours and the memory of your programs",
            ),
            Self::Command { why, .. } if why.kind() == ErrorKind::NotFound => {
                Some("the home inside is empty: --show the folder that the command is in")
            }
            Self::Command { .. }
            | Self::Unexamined(_)
            | Self::Open(_)
            | Self::NoFence(_)
            | Self::Program(_)
            | Self::Home
            | Self::Missing { .. }
            | Self::Wide { .. }
            | Self::Holds { .. }
            | Self::Kernel { .. }
            | Self::Part { .. }
            | Self::Stray { .. }
            | Self::Link(_)
            | Self::Writable(_) => None,
        }
    }
}

/// What forbids user namespaces, by the settings of the kernel that are known to.
struct Forbidden;

impl std::fmt::Display for Forbidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (setting, forbids, remedy) in [
            ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
            ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1",
                "an AppArmor profile that gives bwrap `userns`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let value = std::fs::read_to_string(Path::new("/proc/sys").join(setting)).unwrap_or_default();
            if value.trim() == forbids {
                write!(f, " (allowed by: {remedy})")?;
            }
        }
        Ok(())
    }
}
