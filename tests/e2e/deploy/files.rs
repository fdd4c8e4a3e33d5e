//! The files of `deploy/`, read.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// The folder.
pub(super) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");

/// A file of it.
pub(super) fn read(name: &str) -> String {
    fs::read_to_string(Path::new(FOLDER).join(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

/// Every text that we keep in it, by its path below it.
pub(super) fn all() -> Vec<(String, String)> {
    let mut command = std::process::Command::new("git");
    // Whoever runs this need not own the checkout.
    let listed = command.args(["-c", "safe.directory=*", "-C", FOLDER, "ls-files", "-z", "."]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.split_terminator('\0').filter(|name| Path::new(FOLDER).join(name).is_file());
    let texts =
        names.filter_map(|name| Some((name.to_owned(), fs::read_to_string(Path::new(FOLDER).join(name)).ok()?)));
    let texts: Vec<_> = texts.collect();
    assert!(texts.len() > 20, "what is in deploy/ is not known to git");
    texts
}

/// The documents of a YAML file, with what `<<` names put in place.
pub(super) fn documents(name: &str) -> Vec<Value> {
    parse(name, &read(name))
}

/// The one document of a YAML file.
pub(super) fn document(name: &str) -> Value {
    let mut documents = documents(name);
    assert_eq!(documents.len(), 1, "deploy/{name}");
    documents.remove(0)
}

fn parse(name: &str, text: &str) -> Vec<Value> {
    let documents = YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("deploy/{name}: {error}"));
    documents.iter().map(value).collect()
}

fn value(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Real(text) | Yaml::String(text) => text.clone().into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::Boolean(truth) => (*truth).into(),
        Yaml::Array(items) => items.iter().map(value).collect(),
        Yaml::Hash(pairs) => {
            let mut map = Map::new();
            for (key, item) in pairs {
                match (key.as_str().unwrap(), value(item)) {
                    // What the mapping says itself comes first, wherever it stands.
                    ("<<", Value::Object(merged)) => merged.into_iter().for_each(|(key, item)| {
                        map.entry(key).or_insert(item);
                    }),
                    (key, item) => drop(map.insert(key.to_owned(), item)),
                }
            }
            map.into()
        }
        Yaml::Null => Value::Null,
        Yaml::Alias(_) | Yaml::BadValue => panic!("{yaml:?}"),
    }
}

/// A list of texts.
pub(super) fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// `name=value` lines, as of an environment file; comments and empty lines are none.
pub(super) fn variables<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    lines
        .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line}")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
