//! Whole documents at random, with a mutation hidden in them or without.

use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// What stands between two tokens.
const GAPS: &[&str] =
    &[" ", "\n", "\t", "\r\n", "# mutation{x}\n", "#} mutation {x}\r\n", " # \u{e9} \\ subscription\n"];
const NAMES: &[&str] = &["a", "mutation", "subscription", "query", "fragment", "type", "tempCloneTokens", "_1"];
const VALUES: &[&str] = &[
    "1",
    "-0.5e3",
    "$v",
    "true",
    "null",
    "mutation",
    "\"\"",
    "\"mutation {x}\"",
    "\"\\\"} mutation{x} #\"",
    "\"\"\"\"\"\"",
    "\"\"\"\n} mutation{x} #\r\n\"\"\"",
    "\"\\u006dutation \u{2603}\"",
];
const HIDDEN: &[&str] =
    &["mutation {x}", "mutation M ($a: [In!]!) @d {x}", "subscription {x}", "subscription query {x}"];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES).prop_map(str::to_owned)
}

/// Tokens with a blank between each two.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(VALUES).prop_map(str::to_owned);
    leaf.prop_recursive(3, 8, 3, |value| {
        let list = vec(value.clone(), 0..3).prop_map(|values| format!("[ {} ]", values.join(" , ")));
        let object = (name(), value).prop_map(|(name, value)| format!("{{ {name} : {value} }}"));
        prop_oneof![list, object]
    })
}

fn field() -> impl Strategy<Value = String> {
    let alias = option::of(name()).prop_map(|alias| alias.map_or_else(String::new, |alias| format!("{alias} : ")));
    let argument = option::weighted(0.3, (name(), value()))
        .prop_map(|argument| argument.map_or_else(String::new, |(name, value)| format!(" ( {name} : {value} )")));
    (alias, name(), argument).prop_map(|(alias, name, argument)| format!("{alias}{name}{argument}"))
}

fn selections() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![4 => field(), 1 => name().prop_map(|name| format!("... {name} @d"))];
    let set = |selections: Vec<String>| format!("{{ {} }}", selections.join(" , "));
    let nested = leaf.prop_recursive(4, 12, 3, move |selection| {
        let set = vec(selection, 1..3).prop_map(set);
        prop_oneof![
            (field(), set.clone()).prop_map(|(field, set)| format!("{field} {set}")),
            (option::of(name()), set).prop_map(|(on, set)| match on {
                Some(name) => format!("... on {name} {set}"),
                None => format!("... {set}"),
            }),
        ]
    });
    vec(nested, 1..4).prop_map(set)
}

fn query() -> impl Strategy<Value = String> {
    (0..3, name(), selections()).prop_map(|(form, name, selections)| match form {
        0 => selections,
        1 => format!("query {name} {selections}"),
        _ => format!("query ( $v : [ {name} ! ] ! = {{ {name} : mutation }} ) @d {selections}"),
    })
}

fn definitions() -> impl Strategy<Value = Vec<String>> {
    let fragment =
        (name(), name(), selections()).prop_map(|(name, on, set)| format!("fragment {name} on {on} {set}"));
    (query(), vec(prop_oneof![query(), fragment], 0..4)).prop_map(|(query, mut definitions)| {
        definitions.push(query);
        definitions
    })
}

/// The document: every blank between two tokens becomes one of the gaps, in turn.
fn document(definitions: &[String], gaps: &[&str]) -> String {
    let (mut document, mut in_string, mut turn) = (String::new(), false, gaps.iter().cycle());
    for c in definitions.join(" ").chars() {
        in_string ^= c == '"' && !document.ends_with('\\');
        if c == ' ' && !in_string { document.push_str(turn.next().unwrap()) } else { document.push(c) }
    }
    document
}

fn gaps() -> impl Strategy<Value = Vec<&'static str>> {
    vec(prop::sample::select(GAPS), 1..12)
}

proptest! {
    #[test]
    fn queries_and_fragments_pass(definitions in definitions(), gaps in gaps()) {
        let document = document(&definitions, &gaps);
        prop_assert_eq!(judge(&asking(&document)), Ok(()), "{}", document);
    }

    #[test]
    fn a_hidden_mutation_never_passes(
        mut definitions in definitions(),
        gaps in gaps(),
        hidden in prop::sample::select(HIDDEN),
        at in any::<prop::sample::Index>(),
    ) {
        definitions.insert(at.index(definitions.len() + 1), hidden.to_owned());
        let document = document(&definitions, &gaps);
        let kind = hidden.split(' ').next().unwrap();
        prop_assert_eq!(verdict(&document), format!("graphql-{kind}"), "{}", document);
    }
}
