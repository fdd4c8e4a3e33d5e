//! What is being done, for a person who waits: said at a terminal, once nothing was said for a moment.

use std::io::{IsTerminal as _, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::output;

/// How long nothing is said: less than a person begins to wonder.
const MOMENT: Duration = Duration::from_millis(700);

/// Says what is being done, until it is dropped: then nothing more comes.
pub(super) struct Progress {
    steps: Option<Sender<String>>,
    speaker: Option<JoinHandle<()>>,
}

impl Progress {
    /// To a person at a terminal, unless they want quiet.
    pub(super) fn of(quiet: bool) -> Self {
        if quiet || !stderr().is_terminal() {
            return Self { steps: None, speaker: None };
        }
        let (steps, heard) = channel();
        let speaker = std::thread::Builder::new().name("progress".into());
        // Without the thread all is as well, but in silence.
        let speaker = speaker.spawn(move || speak(&heard, |step| output::note(&format!("{step}...")))).ok();
        Self { steps: Some(steps), speaker }
    }

    /// This is done from now on.
    pub(super) fn step(&self, words: &str) {
        if let Some(steps) = &self.steps {
            let _nobody_speaks = steps.send(words.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.steps.take());
        if let Some(speaker) = self.speaker.take() {
            let _has_panicked = speaker.join();
        }
    }
}

fn speak(steps: &Receiver<String>, say: impl Fn(&str)) {
    let (mut said, mut step) = (Instant::now(), None);
    loop {
        match (steps.recv_timeout(MOMENT.saturating_sub(said.elapsed())), step.take()) {
            (Ok(next), _) => step = Some(next),
            (Err(RecvTimeoutError::Timeout), Some(words)) => {
                say(&words);
                said = Instant::now();
            }
            (Err(RecvTimeoutError::Timeout), None) => match steps.recv() {
                Ok(next) => step = Some(next),
                Err(_ended) => return,
            },
            (Err(RecvTimeoutError::Disconnected), _) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_takes_its_time_is_said_once_and_what_is_over_is_not() {
        let (steps, heard) = channel();
        let (said, says) = channel();
        // Both are there when it begins to listen, so that the first takes no time on any machine.
        steps.send("short".to_owned()).unwrap();
        steps.send("long".to_owned()).unwrap();
        let speaker = std::thread::spawn(move || speak(&heard, |step| said.send(step.to_owned()).unwrap()));
        assert_eq!(says.recv().unwrap(), "long");
        drop(steps);
        speaker.join().unwrap();
        assert_eq!(says.recv().ok(), None);
    }
}
