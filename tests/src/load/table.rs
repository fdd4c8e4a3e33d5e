//! How it went: a row for each kind, and a row for each reason of a failure.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::args::{Args, Kind};

/// Most characters of a reason.
const REASON: usize = 120;
/// Most reasons of a kind that are told apart.
const REASONS: usize = 20;

/// The end of a request.
pub(super) struct Done {
    pub(super) kind: Kind,
    pub(super) took: Duration,
    /// The bytes that it moved, or why it failed.
    pub(super) end: Result<u64, String>,
}

#[derive(Default)]
struct Row {
    times: Vec<Duration>,
    bytes: u64,
    failures: BTreeMap<String, u64>,
}

/// All of it.
pub(super) struct Tally {
    what: String,
    elapsed: Duration,
    rows: BTreeMap<Kind, Row>,
}

impl Tally {
    /// A row for each kind that was asked for, also where none of it was done.
    pub(super) fn new(args: &Args) -> Self {
        let what = format!("{}, {}, {} at once", args.door(), args.repository, args.at_once);
        let rows = args.kinds.iter().map(|kind| (*kind, Row::default())).collect();
        Self { what, elapsed: Duration::ZERO, rows }
    }

    pub(super) fn add(&mut self, done: Done) {
        let row = self.rows.entry(done.kind).or_default();
        match done.end {
            Ok(bytes) => {
                row.times.push(done.took);
                row.bytes += bytes;
            }
            Err(why) => {
                let why = cell(&why);
                let is_new = !row.failures.contains_key(&why);
                let why = if is_new && row.failures.len() >= REASONS { "others".to_owned() } else { why };
                *row.failures.entry(why).or_default() += 1;
            }
        }
    }

    /// It took this long.
    pub(super) fn end(&mut self, elapsed: Duration) {
        self.elapsed = elapsed;
        self.rows.values_mut().for_each(|row| row.times.sort_unstable());
    }

    /// Whether something was done, and nothing failed.
    pub(super) fn is_whole(&self) -> bool {
        let done = self.rows.values().any(|row| !row.times.is_empty());
        done && self.rows.values().all(|row| row.failures.is_empty())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "{}, {seconds:.1} s\n", self.what)?;
        writeln!(f, "| kind | done | failed | a second | p50 ms | p99 ms | bytes a second |")?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- | --- |")?;
        for (kind, row) in &self.rows {
            let (done, failed) = (row.times.len(), row.failures.values().sum::<u64>());
            #[expect(clippy::cast_precision_loss, reason = "rates are for reading")]
            let (rate, bytes) = (done as f64 / seconds, row.bytes as f64 / seconds);
            let (half, most) = (milliseconds(&row.times, 50), milliseconds(&row.times, 99));
            writeln!(f, "| {} | {done} | {failed} | {rate:.2} | {half} | {most} | {bytes:.0} |", kind.as_str())?;
        }
        if self.rows.values().any(|row| !row.failures.is_empty()) {
            writeln!(f, "\n| kind | failed | reason |\n| --- | --- | --- |")?;
        }
        for (kind, row) in &self.rows {
            for (reason, count) in &row.failures {
                writeln!(f, "| {} | {count} | {reason} |", kind.as_str())?;
            }
        }
        Ok(())
    }
}

/// The nearest rank of sorted times; nothing where there are none.
fn milliseconds(times: &[Duration], percent: usize) -> String {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).map(|time| format!("{:.1}", time.as_secs_f64() * 1e3)).unwrap_or_default()
}

/// Text of others, on one line of a table.
fn cell(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control()).map(|c| if c == '|' { '/' } else { c });
    printable.take(REASON).collect()
}
