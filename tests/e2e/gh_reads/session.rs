//! A session in a shell, written down: commands, what each asks the upstream for, and what it prints.
//!
//! | a line | is |
//! | --- | --- |
//! | `$ gh pr checks 42` | a command; all lines below, to the next one, are about it |
//! | `> query PullRequestByNumber` | a request that reaches the upstream, in any order |
//! | `?> query RepositoryReleaseByTag` | a request that may, of several at once of which one is enough |
//! | `= 1` | the exit status, where it is not 0 |
//! | `! no checks reported` | a line on standard error |
//! | `\| build pass` | a line on standard output; so is a line without any of these marks |
//!
//! With `old` or `new` before its mark a line is about that gh alone. In what is printed `[..]` is any text within a
//! line; white space at the end of a line does not count.

use gitdoor_tests::gh::Output;

/// The version of gh that `old` means; `new` is any other.
const OLD: &str = "2.23.0";

/// Any text within a line.
const ANY: &str = "[..]";

/// A command, and what must come of it.
#[derive(Debug, Default)]
pub(super) struct Step<'a> {
    pub(super) command: &'a str,
    asks: Vec<&'a str>,
    may_ask: Vec<&'a str>,
    status: &'a str,
    errors: Vec<&'a str>,
    prints: Vec<&'a str>,
}

/// The steps of a session that this version of gh goes through.
pub(super) fn steps<'a>(script: &'a str, version: &str) -> Vec<Step<'a>> {
    let (this, other) = if version == OLD { ("old", "new") } else { ("new", "old") };
    let mut steps = Vec::new();
    for line in script.lines() {
        let of_other = line.strip_prefix(other).and_then(mark);
        let of_this = line.strip_prefix(this).and_then(mark).or_else(|| mark(line));
        let (mark, text) = of_other.or(of_this).unwrap_or(("|", line));
        if mark == "$" {
            steps.push((of_other.is_none(), Step { command: text, status: "0", ..Step::default() }));
        } else if of_other.is_none() {
            steps.last_mut().unwrap().1.take(mark, text);
        }
    }
    steps.into_iter().filter_map(|(is_of_this, step)| is_of_this.then_some(step)).collect()
}

/// A line's mark, and the rest of it.
fn mark(line: &str) -> Option<(&str, &str)> {
    ["$", ">", "?>", "=", "!", "|"].into_iter().find_map(|mark| {
        let text = line.strip_prefix(mark)?;
        if text.is_empty() { Some((mark, text)) } else { Some((mark, text.strip_prefix(' ')?)) }
    })
}

impl<'a> Step<'a> {
    fn take(&mut self, mark: &str, text: &'a str) {
        match mark {
            ">" => self.asks.push(text),
            "?>" => self.may_ask.push(text),
            "=" => self.status = text,
            "!" => self.errors.push(text),
            _ => self.prints.push(text),
        }
    }

    /// How what came of the command differs from this, if it does.
    pub(super) fn difference(&self, output: &Output, mut went_up: Vec<String>) -> Option<String> {
        went_up.retain(|line| !self.may_ask.contains(&line.as_str()));
        went_up.sort();
        let mut asks = self.asks.clone();
        asks.sort_unstable();
        let status = output.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        let same = went_up == asks
            && status == self.status
            && all_fit(&self.errors, &output.stderr)
            && all_fit(&self.prints, &output.stdout);
        (!same).then(|| {
            let went_up: Vec<&str> = went_up.iter().map(String::as_str).collect();
            let is = show(&went_up, &status, &lines(&output.stderr), &lines(&output.stdout));
            let is_to_be = show(&asks, self.status, &self.errors, &self.prints);
            format!("$ {}\n{is}--- but it is to be\n{is_to_be}---\n", self.command)
        })
    }
}

/// Whether a text has these lines, in this order, and no others.
fn all_fit(expected: &[&str], printed: &str) -> bool {
    let expected = lines_of(expected.iter().copied());
    let printed = lines(printed);
    expected.len() == printed.len() && expected.iter().zip(printed).all(|(pattern, line)| fits(pattern, line))
}

fn lines(text: &str) -> Vec<&str> {
    lines_of(text.lines())
}

/// Without white space at the end, of the lines and of the text.
fn lines_of<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// Whether a line is what a pattern says.
fn fits(pattern: &str, line: &str) -> bool {
    let Some((before, after)) = pattern.split_once(ANY) else { return pattern == line };
    line.strip_prefix(before)
        .is_some_and(|rest| (0..=rest.len()).filter_map(|at| rest.get(at..)).any(|rest| fits(after, rest)))
}

/// In the notation of a session.
fn show(asks: &[&str], status: &str, errors: &[&str], prints: &[&str]) -> String {
    let status = if status == "0" { &[][..] } else { &[status] };
    let marked = [("> ", asks), ("= ", status), ("! ", errors), ("", prints)];
    let lines = marked.iter().flat_map(|(mark, lines)| lines.iter().flat_map(move |line| [mark, line, "\n"]));
    lines.collect()
}

#[test]
fn a_step_is_of_one_gh_or_of_both_and_differs_by_any_line() {
    let script = "$ gh a\n> GET /a\nnew> GET /b\n?> GET /c\nold= 1\nold! no\nx [..] z\n\nold$ gh b\n> GET /d\n";
    let steps_of = |version| steps(script, version).iter().map(|step| step.command).collect::<Vec<_>>();
    assert_eq!((steps_of(OLD), steps_of("2.102.0")), (vec!["gh a", "gh b"], vec!["gh a"]));
    let differs = |code, requests: &[&str], stdout: &str, stderr: &str| {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        let output = Output { command: String::new(), code: Some(code), stdout, stderr };
        let requests = requests.iter().map(|&request| request.to_owned()).collect();
        steps(script, "2.102.0")[0].difference(&output, requests).is_some()
    };
    assert!(!differs(0, &["GET /b", "GET /a"], "x y z\n", ""));
    assert!(!differs(0, &["GET /a", "GET /c", "GET /b"], "x  z\t\n\n", ""));
    assert!(differs(1, &["GET /a", "GET /b"], "x y z", ""));
    assert!(differs(0, &["GET /a"], "x y z", ""));
    assert!(differs(0, &["GET /a", "GET /b", "GET /b"], "x y z", ""));
    assert!(differs(0, &["GET /a", "GET /b"], "x y z!", ""));
    assert!(differs(0, &["GET /a", "GET /b"], "x y z\nmore", ""));
    assert!(differs(0, &["GET /a", "GET /b"], "x y z", "no"));
}
