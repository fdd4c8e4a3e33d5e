//! What may happen to a store, drawn at random.
//!
//! A step names runs and pushes by number, and generations and times by how they stand to those of the model: so a
//! walk of which some steps were taken out is still a walk.

use crate::push::Outcome;

/// The ids of runs, so few that they collide, in an order that is not that of a dictionary.
pub(super) const RUNS: [&str; 6] = ["b", "B", "a-1", "a_1", "a1", "Z"];
/// Terms that a run may be registered on, of which two are the same.
pub(super) const TERMS: u64 = 5;
/// Repositories that a run may be bound to.
pub(super) const REPOSITORIES: u64 = 3;
/// Names of default branches.
pub(super) const BRANCHES: [&str; 3] = ["main", "trunk", "ä/*"];

/// How a push ends.
const ENDS: [Outcome; 5] =
    [Outcome::Done, Outcome::RefusedUpstream, Outcome::Interrupted, Outcome::Unknown, Outcome::Unknown];
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Ask(Question),
    /// The question before is asked once more, as a retry.
    Again,
    /// In microseconds. A clock may be put back.
    Wait(i64),
    /// Until so many microseconds after the end of a run.
    WaitForEnd {
        run: usize,
        after: i64,
    },
    Restart,
    /// What ended so many microseconds ago goes.
    Prune {
        age: i64,
        limit: u32,
    },
}

/// What is asked of a store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Question {
    Register {
        run: usize,
        terms: u64,
    },
    /// In seconds.
    Adopt {
        run: usize,
        budget: u64,
    },
    Rotate(usize),
    /// The generation is the present one and so many more.
    Use {
        run: usize,
        generation: i64,
    },
    Bind {
        run: usize,
        generation: i64,
        repository: u64,
    },
    SeeDefaultBranch {
        run: usize,
        branch: usize,
    },
    Open {
        run: usize,
        generation: i64,
    },
    Refuse(usize),
    /// Of the pushes that there are, by number; if there is none, of one that nobody knows.
    Close {
        push: usize,
        outcome: Outcome,
        refs: usize,
    },
    Revoke(usize),
}

/// So many steps from a seed.
pub(super) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed);
    (0..count).map(|_| random.step()).collect()
}

/// `SplitMix64`: numbers that only have to be varied, and the same for a seed on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    fn run(&mut self) -> usize {
        self.index(RUNS.len())
    }

    /// Mostly the present one.
    fn generation(&mut self) -> i64 {
        self.one(&[0, 0, 0, 0, 0, 0, -1, 1])
    }

    fn step(&mut self) -> Step {
        let run = self.run();
        match self.below(200) {
            0..156 => Step::Ask(self.question(run)),
            156..176 => Step::Again,
            176..184 => Step::Wait(self.one(&[-SECOND, 1, SECOND, MINUTE, 10 * MINUTE, 60 * MINUTE])),
            184..190 => Step::WaitForEnd { run, after: self.one(&[-MINUTE, -1, 0, 1]) },
            190 => Step::Restart,
            _ => Step::Prune { age: self.one(&[-DAY, 0, 0, 1, 10 * MINUTE]), limit: self.one(&[1, 2, 3, 1000]) },
        }
    }

    fn question(&mut self, run: usize) -> Question {
        let generation = self.generation();
        match self.below(78) {
            0..14 => Question::Register { run, terms: self.below(2 * TERMS).saturating_sub(TERMS) },
            14..21 => Question::Adopt { run, budget: self.one(&[1, 45 * 60, 24 * 60 * 60]) },
            21..25 => Question::Rotate(run),
            25..34 => Question::Use { run, generation },
            34..43 => Question::Bind { run, generation, repository: self.below(REPOSITORIES) },
            43..49 => Question::SeeDefaultBranch { run, branch: self.index(BRANCHES.len()) },
            49..62 => Question::Open { run, generation },
            62..64 => Question::Refuse(run),
            64..76 => {
                let (push, outcome, refs) = (self.index(1 << 16), self.one(&ENDS), self.index(4));
                Question::Close { push, outcome, refs }
            }
            _ => Question::Revoke(run),
        }
    }
}
