//! `__type` and `__schema`, by which gh finds out what a server can do.

use serde_json::{Map, Value, json};

use super::document::{Field, Selection};
use super::schema::{FieldType, SCHEMA, Shape};

/// The answer to one of the two.
pub(crate) fn answer(field: &Field) -> Value {
    let node = match field.name.as_str() {
        "__type" => described(field.arguments.get("name").and_then(Value::as_str).unwrap_or_default()),
        _ => json!({
            "queryType": described("Query"),
            "mutationType": { "name": "Mutation" },
            "subscriptionType": null,
            "types": SCHEMA.0.keys().map(|name| described(name)).collect::<Vec<_>>(),
            "directives": [],
        }),
    };
    select(&node, &field.selections)
}

fn described(name: &str) -> Value {
    let Some(known) = SCHEMA.0.get(name) else { return Value::Null };
    let fields = known.fields.iter().map(|(name, field)| described_field(name, field));
    let values = known.values.iter().map(|value| json!({ "name": value, "isDeprecated": false }));
    json!({
        "__typename": "__Type",
        "name": name,
        "kind": known.kind,
        "fields": fields.collect::<Vec<_>>(),
        "enumValues": values.collect::<Vec<_>>(),
    })
}

fn described_field(name: &str, field: &FieldType) -> Value {
    json!({ "name": name, "isDeprecated": field.deprecated, "type": described_shape(&field.shape) })
}

fn described_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Named(name) => {
            let kind = SCHEMA.0.get(name).map_or("SCALAR", |known| known.kind);
            json!({ "name": name, "kind": kind, "ofType": null })
        }
        Shape::List(inner) => json!({ "name": null, "kind": "LIST", "ofType": described_shape(inner) }),
        Shape::Required(inner) => json!({ "name": null, "kind": "NON_NULL", "ofType": described_shape(inner) }),
    }
}

/// Takes from a node what is selected, whatever it is.
fn select(node: &Value, selections: &[Selection]) -> Value {
    match node {
        Value::Array(items) => items.iter().map(|item| select(item, selections)).collect(),
        Value::Object(_) if !selections.is_empty() => {
            let mut taken = Map::new();
            take(node, selections, &mut taken);
            Value::Object(taken)
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => node.clone(),
    }
}

fn take(node: &Value, selections: &[Selection], taken: &mut Map<String, Value>) {
    for selection in selections {
        match selection {
            Selection::Fragment(_, inside) => take(node, inside, taken),
            Selection::Field(field) => {
                let mut value = node[&field.name].clone();
                // Both lists leave out what is deprecated, unless it is asked for.
                if field.arguments.get("includeDeprecated") != Some(&true.into())
                    && let Some(items) = value.as_array_mut()
                {
                    items.retain(|item| item["isDeprecated"] != true);
                }
                taken.insert(field.key.clone(), select(&value, &field.selections));
            }
        }
    }
}
