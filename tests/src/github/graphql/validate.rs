//! Whether a document asks only for what there is; errors are GitHub's.

use serde_json::{Value, json};

use super::document::{Document, Field, Selection};
use super::schema::SCHEMA;

/// All that is wrong with a query.
pub(crate) fn check(document: &Document) -> Vec<Value> {
    let mut check = Check { path: vec![document.title.clone()], errors: Vec::new() };
    check.selections("Query", &document.selections);
    check.errors
}

struct Check {
    path: Vec<String>,
    errors: Vec<Value>,
}

impl Check {
    fn selections(&mut self, of: &str, selections: &[Selection]) {
        for selection in selections {
            match selection {
                Selection::Field(field) => {
                    self.path.push(field.key.clone());
                    self.field(of, field);
                    self.path.pop();
                }
                Selection::Fragment(None, inside) => self.selections(of, inside),
                Selection::Fragment(Some(on), inside) => {
                    self.path.push(format!("... on {on}"));
                    if SCHEMA.is_composite(on) {
                        self.selections(on, inside);
                    } else {
                        let message = format!("No such type {on}, so it can't be a fragment condition");
                        self.error(&message, &json!({ "code": "undefinedType", "typeName": on }), None);
                    }
                    self.path.pop();
                }
            }
        }
    }

    fn field(&mut self, of: &str, field: &Field) {
        let Field { name, selections, .. } = field;
        if name == "__typename" || (of == "Query" && ["__type", "__schema"].contains(&name.as_str())) {
            return;
        }
        let Some(known) = SCHEMA.field(of, name) else {
            let message = format!("Field '{name}' doesn't exist on type '{of}'");
            let extensions = json!({ "code": "undefinedField", "typeName": of, "fieldName": name });
            return self.error(&message, &extensions, Some(field));
        };
        let inner = known.shape.name();
        match (SCHEMA.is_composite(inner), selections.is_empty()) {
            (true, true) => {
                let message = format!(
                    "Field must have selections (field '{name}' returns {inner} but has no selections. Did you mean \
                     '{name} {{ ... }}'?)"
                );
                let extensions = json!({ "code": "selectionMismatch", "nodeName": format!("field '{name}'") });
                self.error(&message, &extensions, Some(field));
            }
            (false, false) => {
                let message = format!("Selections can't be made on scalars (field '{name}' returns {inner})");
                let extensions = json!({ "code": "selectionMismatch", "nodeName": format!("field '{name}'") });
                self.error(&message, &extensions, Some(field));
            }
            (true, false) => self.selections(inner, selections),
            (false, true) => {}
        }
    }

    fn error(&mut self, message: &str, extensions: &Value, field: Option<&Field>) {
        let (line, column) = field.map_or((1, 1), |field| field.location);
        self.errors.push(json!({
            "path": self.path,
            "extensions": extensions,
            "locations": [{ "line": line, "column": column }],
            "message": message,
        }));
    }
}
