//! The executor: it walks a selection and the nodes together, by the schema's types. What it cannot give is null and an
//! error with its path, as GitHub has it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::connection;
use super::document::{Field, Selection};
use super::forbidden;
use super::introspection;
use super::schema::{SCHEMA, Shape};
use crate::github::State;
use crate::github::api::Limit;
use crate::github::tokens::Token;

/// One execution of one query.
pub(crate) struct Execution<'a> {
    pub(crate) state: &'a State,
    pub(crate) token: &'a Token,
    pub(crate) limit: Limit,
    /// Repositories that were asked for, by name.
    pub(super) repositories: HashMap<String, Value>,
    path: Vec<Value>,
    errors: Vec<Value>,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(state: &'a State, token: &'a Token, limit: Limit) -> Self {
        Self { state, token, limit, repositories: HashMap::new(), path: Vec::new(), errors: Vec::new() }
    }

    /// Data and errors.
    pub(crate) fn run(mut self, selections: &[Selection]) -> (Value, Vec<Value>) {
        let data = self.object("Query", &json!({}), &selections.iter().collect::<Vec<_>>());
        (data, self.errors)
    }

    fn object(&mut self, of: &str, node: &Value, selections: &[&Selection]) -> Value {
        let mut collected = Vec::new();
        collect(of, selections, &mut collected);
        let mut answer = Map::new();
        for (field, inside) in collected {
            self.path.push(field.key.as_str().into());
            let value = self.field(of, node, field, &inside);
            self.path.pop();
            answer.insert(field.key.clone(), value);
        }
        Value::Object(answer)
    }

    fn field(&mut self, of: &str, node: &Value, field: &Field, inside: &[&Selection]) -> Value {
        match field.name.as_str() {
            "__typename" => return of.into(),
            "__type" | "__schema" => return introspection::answer(field),
            _ => {}
        }
        let Some(known) = SCHEMA.field(of, &field.name) else { return Value::Null };
        let name = known.shape.name();
        if let Some(listed) = name.strip_suffix("Connection") {
            if !self.may_see(listed) {
                return self.forbid(field);
            }
            if let Some((kind, message)) = connection::misused(field) {
                return self.fail(kind, &message, field);
            }
        }
        match self.resolve(of, node, field) {
            Ok(value) => self.complete(&known.shape, &value, field, inside),
            Err((kind, message)) => self.fail(kind, &message, field),
        }
    }

    /// Makes of a value what its type promises.
    fn complete(&mut self, shape: &Shape, value: &Value, field: &Field, inside: &[&Selection]) -> Value {
        match shape {
            Shape::Required(inner) if value.is_null() => self.complete(inner, &default(inner), field, inside),
            Shape::Required(inner) => self.complete(inner, value, field, inside),
            Shape::List(inner) => {
                let mut items = Vec::new();
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.path.push(index.into());
                    items.push(self.complete(inner, item, field, inside));
                    self.path.pop();
                }
                if value.is_null() { Value::Null } else { items.into() }
            }
            Shape::Named(name) if name.ends_with("Connection") => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                self.object(name, &connection::page(items, &field.arguments), inside)
            }
            Shape::Named(name) if SCHEMA.is_composite(name) => self.node(name, value, field, inside),
            Shape::Named(_) => value.clone(),
        }
    }

    fn node(&mut self, name: &str, value: &Value, field: &Field, inside: &[&Selection]) -> Value {
        let value = match value["__repository"].as_str() {
            Some(repository) => self.repository(repository).unwrap_or_default(),
            None => value.clone(),
        };
        if value.is_null() {
            return Value::Null;
        }
        let concrete = value["__typename"].as_str().unwrap_or(name).to_owned();
        if !self.may_see(&concrete) {
            return self.forbid(field);
        }
        self.object(&concrete, &value, inside)
    }

    /// Whether the token has the permission for nodes of a type.
    fn may_see(&self, name: &str) -> bool {
        let needed = match name {
            "Issue" => "issues",
            "PullRequest" => "pull_requests",
            "Release" | "Ref" | "Tree" | "Blob" => "contents",
            "CheckRun" | "CheckSuite" => "checks",
            "StatusContext" => "statuses",
            "WorkflowRun" | "Workflow" => "actions",
            _ => return true,
        };
        self.token.may(needed, "read")
    }

    fn forbid(&mut self, field: &Field) -> Value {
        self.errors.push(forbidden(&self.path, field.location));
        Value::Null
    }

    fn fail(&mut self, kind: &str, message: &str, field: &Field) -> Value {
        let (line, column) = field.location;
        self.errors.push(json!({
            "type": kind,
            "path": self.path,
            "locations": [{ "line": line, "column": column }],
            "message": message,
        }));
        Value::Null
    }
}

/// The fields that are asked of an object of this type, each once, with all that is selected in it.
fn collect<'s>(of: &str, selections: &[&'s Selection], into: &mut Vec<(&'s Field, Vec<&'s Selection>)>) {
    for selection in selections {
        match selection {
            Selection::Field(field) => {
                let known = into.iter_mut().find(|(known, _)| known.key == field.key);
                match known {
                    Some((_, inside)) => inside.extend(&field.selections),
                    None => into.push((field, field.selections.iter().collect())),
                }
            }
            Selection::Fragment(on, inside) => {
                if on.as_ref().is_none_or(|on| SCHEMA.is_a(of, on)) {
                    collect(of, &inside.iter().collect::<Vec<_>>(), into);
                }
            }
        }
    }
}

/// What stands where something must be and nobody wrote it down.
fn default(shape: &Shape) -> Value {
    match shape {
        Shape::Required(inner) => default(inner),
        Shape::List(_) => json!([]),
        Shape::Named(name) => match name.as_str() {
            "Int" | "BigInt" => 0.into(),
            "Float" => 0.0.into(),
            "Boolean" => false.into(),
            name if name.ends_with("Connection") => json!([]),
            name if SCHEMA.is_composite(name) => json!({}),
            name => {
                let values = SCHEMA.0.get(name).map_or(&[][..], |known| known.values.as_slice());
                values.first().cloned().unwrap_or_default().into()
            }
        },
    }
}
