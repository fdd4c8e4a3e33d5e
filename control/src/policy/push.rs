//! What a push may update: branches of the bound repository, never one that is or was its default branch.

use std::collections::HashMap;

use gitdoor_proto::reason::printable;
use gitdoor_proto::{Denial, Reason, RefName, RepositoryName};

use crate::push::Command;
use crate::run::Options;

/// Most names that a hint spells out: it is one line of a terminal.
const HINT_NAMES: usize = 8;

/// What a push is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The repository that the run is bound to.
    pub repository: &'a RepositoryName,
    /// Every branch that is its default, or was at any time in the run.
    pub default_branches: &'a [String],
    /// How the run is narrowed.
    pub options: &'a Options,
}

/// A rule about a ref, in the order in which they are told: the first that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Name,
    Namespace,
    Tag,
    DefaultBranch,
    Delete,
    Repeated,
    Pattern,
    Count,
}

impl Rule {
    /// The stable code, the few words that git prints beside the ref, and what the hint adds.
    fn told(self) -> (Reason, &'static str, &'static str) {
        match self {
            Self::Name => {
                (Reason::RefInvalid, "invalid ref name", "; their names follow git check-ref-format and are UTF-8")
            }
            Self::Namespace => (Reason::Namespace, "not a branch", ""),
            Self::Tag => (Reason::Tag, "tag", ""),
            Self::DefaultBranch => (Reason::DefaultBranch, "default branch", ""),
            Self::Delete => (Reason::Delete, "delete", "; it may not delete any"),
            Self::Repeated => (Reason::RefRepeated, "ref named twice", "; each is named once in a push"),
            Self::Pattern => (Reason::BranchNotPermitted, "branch not permitted", ""),
            Self::Count => (Reason::TooManyRefs, "too many refs", ""),
        }
    }
}

/// Judges every command of a push. One refused ref refuses them all; each then has words of its own.
pub fn judge(commands: &[Command], rules: Rules<'_>) -> Result<(), Denial> {
    let mut times: HashMap<&[u8], usize> = HashMap::new();
    for command in commands {
        *times.entry(command.ref_name.as_slice()).or_default() += 1;
    }
    let many = rules.options.max_refs.is_some_and(|most| commands.len() > most.get() as usize);
    let verdict = |command: &Command| {
        let repeated = times.get(command.ref_name.as_slice()).is_some_and(|times| *times > 1);
        first_broken(command, repeated, many, rules)
    };
    let verdicts: Vec<Option<Rule>> = commands.iter().map(verdict).collect();
    let Some(first) = verdicts.iter().flatten().next() else {
        return Ok(());
    };
    let (reason, _, also) = first.told();
    let mut denial = Denial::new(reason, format!("this run may push {}{also}", permitted(rules)));
    denial.refs = verdicts.into_iter().map(spoken).collect();
    Err(denial)
}

fn spoken(verdict: Option<Rule>) -> (Reason, String) {
    let (reason, words, _) =
        verdict.map_or((Reason::OtherRef, "another ref of this push was refused", ""), Rule::told);
    (reason, words.to_owned())
}

fn first_broken(command: &Command, repeated: bool, many: bool, rules: Rules<'_>) -> Option<Rule> {
    let Ok(name) = RefName::parse(&command.ref_name) else {
        return Some(Rule::Name);
    };
    let Some(branch) = name.branch() else {
        let tag = name.as_str().starts_with("refs/tags/");
        return Some(if tag { Rule::Tag } else { Rule::Namespace });
    };
    let patterns = &rules.options.branches;
    // Compared byte for byte, as git does: `Main` is another branch than `main`.
    if rules.default_branches.iter().any(|default| default == branch) {
        Some(Rule::DefaultBranch)
    } else if command.is_delete() {
        Some(Rule::Delete)
    } else if repeated {
        Some(Rule::Repeated)
    } else if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.matches(branch)) {
        Some(Rule::Pattern)
    } else if many {
        Some(Rule::Count)
    } else {
        None
    }
}

/// What a run may push, in words.
#[must_use]
pub fn permitted(rules: Rules<'_>) -> String {
    let branches = match rules.options.branches.as_slice() {
        [] => format!("branches of {}", rules.repository),
        patterns => {
            let names = listed(patterns.iter().map(gitdoor_proto::Pattern::as_str));
            format!("the branches {names} of {}", rules.repository)
        }
    };
    let defaults = listed(rules.default_branches.iter().map(String::as_str));
    let most = rules.options.max_refs.map_or_else(String::new, |most| format!(", at most {most} at once"));
    printable(&format!("{branches} other than {defaults}{most}"))
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(HINT_NAMES);
    let shown: Vec<_> = names.take(HINT_NAMES).collect();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::run;
    use gitdoor_proto::Pattern;
    use proptest::prelude::*;
    use std::num::NonZeroU32;
    use std::time::SystemTime;

    fn options() -> Options {
        run("r", SystemTime::UNIX_EPOCH).terms.options
    }

    fn update(name: &str) -> Command {
        Command { old_oid: "1".repeat(40), new_oid: "2".repeat(40), ref_name: name.as_bytes().to_vec() }
    }

    fn delete(name: &str) -> Command {
        Command { new_oid: "0".repeat(40), ..update(name) }
    }

    fn judged(commands: &[Command], options: &Options) -> Result<(), Denial> {
        let repository = RepositoryName::parse("acme/api").unwrap();
        let default_branches = ["main".to_owned(), "trunk".to_owned()];
        judge(commands, Rules { repository: &repository, default_branches: &default_branches, options })
    }

    fn reason(command: Command, options: &Options) -> Option<Reason> {
        judged(&[command], options).err().map(|denial| denial.reason)
    }

    #[test]
    fn branches_other_than_the_default_may_be_pushed() {
        for name in ["fix-x", "Main", "main2", "a/main", "main/x", "refs/heads/main", "ä/ß", "HEAD"] {
            assert_eq!(reason(update(&format!("refs/heads/{name}")), &options()), None, "{name}");
        }
    }

    #[test]
    fn every_rule_refuses_by_name() {
        let narrow = Options { branches: vec![Pattern::parse("agent/*").unwrap()], ..options() };
        let table = [
            (update("refs/heads/main"), Reason::DefaultBranch),
            (update("refs/heads/trunk"), Reason::DefaultBranch),
            (delete("refs/heads/main"), Reason::DefaultBranch),
            (delete("refs/heads/agent/x"), Reason::Delete),
            (update("refs/tags/v1"), Reason::Tag),
            (delete("refs/tags/v1"), Reason::Tag),
            (update("refs/notes/commits"), Reason::Namespace),
            (update("refs/pull/1/head"), Reason::Namespace),
            (update("refs/replace/1"), Reason::Namespace),
            (update("refs/headsx/a"), Reason::Namespace),
            (update("heads/x"), Reason::Namespace),
            (update("HEAD"), Reason::RefInvalid),
            (update("refs/heads/"), Reason::RefInvalid),
            (update("refs/heads/a..b"), Reason::RefInvalid),
            (update("refs/heads/../../config"), Reason::RefInvalid),
            (update("refs/heads/fix"), Reason::BranchNotPermitted),
            (update("refs/heads/agent/a/b"), Reason::BranchNotPermitted),
        ];
        for (command, expected) in table {
            assert_eq!(reason(command.clone(), &narrow), Some(expected), "{command:?}");
        }
        assert_eq!(reason(update("refs/heads/agent/x"), &narrow), None);
        let raw = Command { ref_name: b"refs/heads/\xc0".to_vec(), ..update("") };
        assert_eq!(reason(raw, &options()), Some(Reason::RefInvalid));
    }

    #[test]
    fn one_refused_ref_refuses_all_and_each_is_told_why() {
        let commands = [update("refs/heads/ok"), update("refs/heads/main"), update("refs/tags/v1")];
        let denial = judged(&commands, &options()).unwrap_err();
        assert_eq!(denial.reason, Reason::DefaultBranch);
        assert_eq!(denial.message, "this run may push branches of acme/api other than main, trunk");
        let told: Vec<_> = denial.refs.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(told, ["another ref of this push was refused", "default branch", "tag"]);
    }

    #[test]
    fn a_ref_named_twice_is_refused_each_time() {
        let commands = [update("refs/heads/a"), update("refs/heads/b"), delete("refs/heads/a")];
        let reasons: Vec<_> = judged(&commands, &options()).unwrap_err().refs.into_iter().map(|(r, _)| r).collect();
        assert_eq!(reasons, [Reason::RefRepeated, Reason::OtherRef, Reason::Delete]);
    }

    #[test]
    fn more_refs_than_permitted_are_refused_and_the_hint_names_the_limits() {
        let narrow = Options {
            branches: vec![Pattern::parse("agent/*").unwrap(), Pattern::parse("fix").unwrap()],
            max_refs: NonZeroU32::new(1),
            ..options()
        };
        let denial = judged(&[update("refs/heads/fix"), update("refs/heads/agent/x")], &narrow).unwrap_err();
        assert_eq!(denial.reason, Reason::TooManyRefs);
        assert_eq!(
            denial.message,
            "this run may push the branches agent/*, fix of acme/api other than main, trunk, at most 1 at once"
        );
        assert_eq!(judged(&[update("refs/heads/fix")], &narrow), Ok(()));
    }

    #[test]
    fn a_hint_stays_one_line_however_many_patterns_there_are() {
        let branches = (0..100).map(|n| Pattern::parse(&format!("b{n}")).unwrap()).collect();
        let denial = judged(&[update("refs/heads/x")], &Options { branches, ..options() }).unwrap_err();
        assert!(denial.message.contains("b7 and 92 more of acme/api"), "{}", denial.message);
    }

    proptest! {
        #[test]
        fn whatever_is_pushed_a_default_branch_is_never_among_what_is_allowed(
            names in proptest::collection::vec("(refs/heads/)?(main|trunk|[a-c]|refs/heads/main)", 1..5)
        ) {
            let commands: Vec<_> = names.iter().map(|name| update(name)).collect();
            match judged(&commands, &options()) {
                Ok(()) => {
                    for name in ["refs/heads/main", "refs/heads/trunk"] {
                        prop_assert!(!names.iter().any(|n| n == name));
                    }
                }
                Err(denial) => prop_assert_eq!(denial.refs.len(), commands.len()),
            }
        }
    }
}
