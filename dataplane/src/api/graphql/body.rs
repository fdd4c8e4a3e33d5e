//! The JSON object of a request (<https://graphql.github.io/graphql-over-http/>), and the document in it.
//!
//! No key may occur twice in any object: of two, one reader takes the first, another the last. Values are checked as
//! they pass and not kept.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Excerpt, Unaskable};

/// The members of a request.
const MEMBERS: [&str; 4] = ["query", "variables", "operationName", "extensions"];
/// Members by which servers look up a document that they have stored.
const STORED: [&str; 4] = ["id", "documentId", "doc_id", "queryId"];
/// Most values in a request, all of its objects and lists together. gh's variables have ten; a mebibyte of them would
/// keep a thread busy.
const MOST_VALUES: u32 = 10_000;
/// Most characters of a key in an error's words.
const KEY_CHARS: usize = 32;

/// The document of a request's body.
pub(super) fn document(body: &[u8]) -> Result<String, Unaskable> {
    let text = str::from_utf8(body).map_err(|_invalid| Unaskable::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(Unaskable::ByteOrderMark);
    }
    if text.trim_ascii_start().starts_with('[') {
        return Err(Unaskable::Batch);
    }
    let request = serde_json::from_str::<Request>(text).map_err(|error| malformed(&error.to_string()))?;
    request.document()
}

fn malformed(why: &str) -> Unaskable {
    Unaskable::Body(Excerpt::of(why))
}

/// The members that came.
struct Request(BTreeMap<String, Value>);

impl Request {
    fn document(mut self) -> Result<String, Unaskable> {
        let mut stored = STORED.iter().any(|key| self.0.contains_key(*key));
        match self.0.remove("extensions") {
            None | Some(Value::Null | Value::Object { empty: true }) => {}
            Some(Value::Object { empty: false }) => stored = true,
            Some(Value::Text(_) | Value::Other) => return Err(malformed("extensions is not an object")),
        }
        match self.0.remove("variables") {
            None | Some(Value::Null | Value::Object { .. }) => {}
            Some(Value::Text(_) | Value::Other) => return Err(malformed("variables is not an object")),
        }
        match self.0.remove("operationName") {
            None | Some(Value::Null | Value::Text(_)) => {}
            Some(Value::Object { .. } | Value::Other) => return Err(malformed("operationName is not a string")),
        }
        match self.0.remove("query") {
            _ if stored => Err(Unaskable::Stored),
            Some(Value::Text(document)) => Ok(document),
            Some(Value::Null | Value::Object { .. } | Value::Other) => Err(malformed("query is not a string")),
            None => Err(malformed("there is no query")),
        }
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Request;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Request, A::Error> {
        let (mut members, left) = (BTreeMap::new(), Cell::new(MOST_VALUES));
        while let Some(key) = map.next_key::<String>()? {
            if !MEMBERS.iter().chain(&STORED).any(|known| *known == key) {
                return Err(key_error("unknown key", &key));
            }
            if members.contains_key(&key) {
                return Err(key_error("repeated key", &key));
            }
            members.insert(key, map.next_value_seed(AnyValue { left: &left })?);
        }
        Ok(Request(members))
    }
}

fn key_error<E: Error>(what: &str, key: &str) -> E {
    let key: String = key.chars().take(KEY_CHARS).collect();
    E::custom(format_args!("{what} '{key}'"))
}

/// As much of a JSON value as a request is judged by.
enum Value {
    Null,
    Text(String),
    Object { empty: bool },
    Other,
}

/// Reads any value, while there are some left.
#[derive(Clone, Copy)]
struct AnyValue<'a> {
    left: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let too_many = || D::Error::custom(format_args!("more than {MOST_VALUES} values"));
        self.left.set(self.left.get().checked_sub(1).ok_or_else(too_many)?);
        // Only this way does serde_json bound the nesting.
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        while seq.next_element_seed(self)?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(key_error("repeated key", &key));
            }
            keys.insert(key);
            map.next_value_seed(self)?;
        }
        Ok(Value::Object { empty: keys.is_empty() })
    }
}
