//! JSON shapes with holes: GitHub's published objects as files, filled with facts.
//!
//! In a shape every string may have holes, `{name}`. A string that is nothing but a hole becomes the fact itself, of
//! any type; elsewhere the fact's text goes in. A hole without a fact stays, as GitHub's own URL templates do.

use serde_json::{Map, Value};

/// Facts by the names of the holes that they fill.
pub(crate) type Facts = Map<String, Value>;

/// A shape from a file in `data/`, read once.
macro_rules! shape {
    ($name:literal) => {{
        static SHAPE: std::sync::LazyLock<serde_json::Value> = std::sync::LazyLock::new(|| {
            let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/github/data/", $name, ".json"));
            serde_json::from_str(text).expect($name)
        });
        &*SHAPE
    }};
}
pub(crate) use shape;

/// Fills a shape. Of two layers with the same fact, the first one counts.
pub(crate) fn fill(shape: &Value, layers: &[&Facts]) -> Value {
    match shape {
        Value::String(text) => fill_text(text, layers),
        Value::Array(items) => items.iter().map(|item| fill(item, layers)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| (name.clone(), fill(value, layers)));
            Value::Object(filled.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => shape.clone(),
    }
}

fn fill_text(text: &str, layers: &[&Facts]) -> Value {
    let fact = |name: &str| layers.iter().find_map(|layer| layer.get(name));
    let hole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(fact) = hole.and_then(fact) {
        return fact.clone();
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        match fact(name) {
            Some(fact) => filled.push_str(&as_text(fact)),
            None => filled.extend(["{", name, "}"]),
        }
        rest = after;
    }
    filled.push_str(rest);
    Value::String(filled)
}

fn as_text(fact: &Value) -> String {
    fact.as_str().map_or_else(|| fact.to_string(), str::to_owned)
}

/// Two objects as one; where both have a field, the second one's counts.
pub(crate) fn merged(first: &Value, second: &Value) -> Value {
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut all = fields(first);
    all.extend(fields(second));
    Value::Object(all)
}
