//! A terminal of the test's own: what a person types, what they see, its size, and its end.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};

use crate::client::{Client, kill_group};

/// What the shell prints when it waits for a line.
const PROMPT: &str = "prompt> ";
/// Rows and columns to begin with.
const SIZE: (u16, u16) = (30, 100);
/// How long what is waited for may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A terminal with an interactive shell, which has job control.
pub struct Terminal {
    /// The side of the person; nothing once it is closed.
    near: Option<OwnedFd>,
    /// What it showed since what was last waited for.
    shown: Vec<u8>,
    shell: Child,
}

impl Terminal {
    pub(crate) async fn open(client: &Client) -> Self {
        let waits_not = OFlags::NONBLOCK.bits().cast_signed();
        let near = OpenOptions::new().read(true).write(true).custom_flags(waits_not).open("/dev/ptmx");
        let near = near.expect("a terminal");
        unlockpt(&near).expect("a terminal");
        let far = ioctl_tiocgptpeer(&near, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("its other side");
        let end = || Stdio::from(far.try_clone().expect("a descriptor"));
        // It becomes the leader of a session that its input, the terminal, controls.
        let mut shell = Command::new("setsid");
        shell.args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]);
        shell.current_dir(client.folder()).env_clear();
        shell.envs(client.environment().iter().map(|(name, value)| (name, value)));
        shell.env("TERM", "xterm").env("PS1", PROMPT).stdin(end()).stdout(end()).stderr(end());
        let shell = shell.spawn().expect("setsid");
        let mut terminal = Self { near: Some(near.into()), shown: Vec::new(), shell };
        terminal.resize(SIZE.0, SIZE.1);
        terminal.prompts().await;
        terminal
    }

    fn near(&self) -> &OwnedFd {
        self.near.as_ref().expect("an open terminal")
    }

    /// Types keys.
    pub fn press(&self, keys: &str) {
        let written = rustix::io::write(self.near(), keys.as_bytes()).expect("to be typed");
        assert_eq!(written, keys.len(), "{keys:?}");
    }

    /// Types a line.
    pub fn enter(&self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until it shows these words, after those that were waited for before: all that it showed since then.
    pub async fn shows(&mut self, words: &str) -> String {
        let began = Instant::now();
        loop {
            self.read();
            if let Some(at) = self.shown.windows(words.len()).position(|shown| shown == words.as_bytes()) {
                let shown: Vec<u8> = self.shown.drain(..at + words.len()).collect();
                return String::from_utf8_lossy(&shown).into_owned();
            }
            assert!(began.elapsed() < LIMIT, "{words:?} is not shown: {:?}", String::from_utf8_lossy(&self.shown));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(self.near(), &mut bytes) {
            self.shown.extend_from_slice(&bytes[..count]);
        }
    }

    /// Waits until the shell waits for a line: what was shown until then.
    pub async fn prompts(&mut self) -> String {
        self.shows(PROMPT).await
    }

    /// Types a line, and waits until the shell has run it: what was shown for it.
    pub async fn run(&mut self, line: &str) -> String {
        self.enter(line);
        let shown = self.prompts().await;
        let (_echo, shown) = shown.split_once('\n').expect("the line that was typed");
        shown.trim_end_matches(PROMPT).to_owned()
    }

    /// The exit status of what the shell ran.
    pub async fn status(&mut self) -> String {
        self.run("echo $?").await.trim().to_owned()
    }

    /// Gives it another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.near(), size).expect("another size");
    }

    /// Whether it shows what is typed, and gives it out line by line.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(self.near()).expect("its settings").local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Whether what is typed is for the shell.
    pub fn is_the_shells(&self) -> bool {
        let group = tcgetpgrp(self.near()).expect("its group");
        u32::try_from(group.as_raw_nonzero().get()).is_ok_and(|group| group == self.shell.id())
    }

    /// Closes it: a person shuts the window.
    pub fn close(&mut self) {
        self.near = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.near = None;
        kill_group(self.shell.id());
        let _status = self.shell.wait();
    }
}
