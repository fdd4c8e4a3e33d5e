//! An environment as a shell, a program, a container or a pod takes it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::Variables;
use super::settings::{CONFIG, HOSTS, Settings};

/// The Secret that a pod's fragment names.
pub(super) const SECRET: &str = "gitdoor-run";

/// For a shell's `eval`.
pub(super) fn sh(variables: &Variables) -> String {
    let mut text = String::new();
    if !variables.unset().is_empty() {
        let _ = writeln!(text, "unset {}", variables.unset().join(" "));
    }
    for (name, value) in variables.set() {
        let _ = writeln!(text, "export {name}={}", quoted(value));
    }
    text
}

/// One word of a shell, whatever is in it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// One object.
pub(super) fn json(variables: &Variables, settings: Option<&Settings>) -> String {
    let set: Map<String, Value> =
        variables.set().iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let files: Vec<Value> = settings.map_or_else(Vec::new, |settings| {
        [CONFIG, HOSTS].map(|file| json!({ "path": format!("{}/{file}", settings.text()), "mode": "0600" })).into()
    });
    format!("{}\n", json!({ "set": set, "unset": variables.unset(), "files": files }))
}

/// For `--env-file`, whose lines are taken as they are, to their ends.
pub(super) fn docker(variables: &Variables) -> String {
    let mut text = String::new();
    for (name, value) in with_empty(variables) {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

/// A fragment of a pod. JSON's strings are YAML's, too.
pub(super) fn kubernetes(variables: &Variables, settings: Option<&Settings>) -> String {
    let mut text = "spec:\n  containers:\n    - name: workspace\n      env:\n".to_owned();
    for (name, value) in with_empty(variables) {
        let _ = writeln!(text, "        - name: {name}");
        // One that is to be nothing is in no Secret.
        if Variables::is_secret(name) && !value.is_empty() {
            let from = format!("{{ secretKeyRef: {{ name: {SECRET}, key: bearer }} }}");
            let _ = writeln!(text, "          valueFrom: {from}");
        } else {
            let _ = writeln!(text, "          value: {}", Value::from(value));
        }
    }
    if let Some(settings) = settings {
        let folder = Value::from(settings.text());
        let _ = write!(
            text,
            "      volumeMounts:\n        - {{ name: gitdoor, mountPath: {folder}, readOnly: true }}\n  \
             volumes:\n    - name: gitdoor\n      \
             secret: {{ secretName: {SECRET}, defaultMode: 0400 }} # 0440 and an fsGroup, unless it runs as root\n"
        );
    }
    text
}

/// What is set, and what cannot be unset as nothing.
fn with_empty(variables: &Variables) -> impl Iterator<Item = (&str, &str)> {
    let empty = variables.unset().iter().map(|name| (*name, ""));
    variables.set().iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_of_a_shell_whatever_is_in_it() {
        for (value, word) in [("", "''"), ("a b", "'a b'"), ("$x`y`\\", "'$x`y`\\'"), ("it's", r"'it'\''s'")] {
            assert_eq!(quoted(value), word);
        }
    }
}
