//! A document as it is executed: one operation, its variables put in, its fragments where they are spread.

use std::collections::HashMap;

use apollo_parser::cst::{self, CstNode as _};
use serde_json::{Map, Number, Value};

/// How deep fragments and selections may lie in each other.
const DEPTH: usize = 60;

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Mutation,
    Subscription,
}

/// One operation.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) kind: Kind,
    /// As an error's path begins: `query` or `query Name`.
    pub(crate) title: String,
    pub(crate) selections: Vec<Selection>,
}

/// One part of a selection.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    Field(Field),
    /// Only of this type, if there is one.
    Fragment(Option<String>, Vec<Selection>),
}

/// A field that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its name in the answer.
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) selections: Vec<Selection>,
    /// Line and column.
    pub(crate) location: (usize, usize),
}

impl Document {
    /// Reads a document; of several operations the one that is named.
    pub(crate) fn parse(text: &str, name: Option<&str>, variables: &Map<String, Value>) -> Result<Self, String> {
        let tree = apollo_parser::Parser::new(text).parse();
        if let Some(error) = tree.errors().next() {
            let (line, column) = place(text, error.index());
            return Err(format!("Parse error on {:?} at [{line}, {column}]: {}", error.data(), error.message()));
        }
        let mut operations = Vec::new();
        let mut fragments = HashMap::new();
        for definition in tree.document().definitions() {
            if let cst::Definition::OperationDefinition(operation) = definition {
                operations.push(operation);
            } else if let cst::Definition::FragmentDefinition(fragment) = definition {
                let name = fragment.fragment_name().and_then(|name| name.name());
                fragments.insert(text_of(name), fragment);
            }
        }
        let named = |operation: &cst::OperationDefinition| Some(text_of(operation.name()).as_str()) == name;
        let operation = match (operations.as_slice(), name) {
            ([only], None) => Some(only),
            (several, Some(_)) => several.iter().find(|operation| named(operation)),
            (_, None) => None,
        };
        let operation = operation.ok_or("An operation name is required")?;
        let defaults = Reader { text, fragments: &fragments, variables: Map::new() };
        let mut known = defaults.defaults(operation);
        known.extend(variables.clone());
        let reader = Reader { variables: known, ..defaults };
        reader.operation(operation)
    }

    /// The fields at its top.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.selections.iter().filter_map(|selection| match selection {
            Selection::Field(field) => Some(field),
            Selection::Fragment(..) => None,
        })
    }
}

struct Reader<'a> {
    text: &'a str,
    fragments: &'a HashMap<String, cst::FragmentDefinition>,
    variables: Map<String, Value>,
}

impl Reader<'_> {
    fn operation(&self, operation: &cst::OperationDefinition) -> Result<Document, String> {
        let word = operation.operation_type().map(|kind| kind.syntax().text().to_string());
        let (kind, word) = match word.as_deref().map(str::trim) {
            Some("mutation") => (Kind::Mutation, "mutation"),
            Some("subscription") => (Kind::Subscription, "subscription"),
            Some(_) | None => (Kind::Query, "query"),
        };
        let title = format!("{word} {}", text_of(operation.name())).trim().to_owned();
        Ok(Document { kind, title, selections: self.selections(operation.selection_set(), 0)? })
    }

    /// The values of variables that the request may leave out.
    fn defaults(&self, operation: &cst::OperationDefinition) -> Map<String, Value> {
        let definitions = operation.variable_definitions();
        let definitions = definitions.into_iter().flat_map(|all| all.variable_definitions());
        let known = definitions.filter_map(|definition| {
            let name = text_of(definition.variable()?.name());
            let value = definition.default_value()?.value()?;
            Some((name, self.value(&value)))
        });
        known.collect()
    }

    fn selections(&self, set: Option<cst::SelectionSet>, depth: usize) -> Result<Vec<Selection>, String> {
        if depth > DEPTH {
            return Err("The document is too deep, or a fragment spreads itself".to_owned());
        }
        let mut selections = Vec::new();
        for selection in set.into_iter().flat_map(|set| set.selections()) {
            match selection {
                cst::Selection::Field(field) if self.is_included(field.directives()) => {
                    selections.push(Selection::Field(self.field(&field, depth)?));
                }
                cst::Selection::InlineFragment(inline) if self.is_included(inline.directives()) => {
                    let inside = self.selections(inline.selection_set(), depth + 1)?;
                    selections.push(Selection::Fragment(type_of(inline.type_condition()), inside));
                }
                cst::Selection::FragmentSpread(spread) if self.is_included(spread.directives()) => {
                    let name = text_of(spread.fragment_name().and_then(|name| name.name()));
                    let fragment = self.fragments.get(&name);
                    let fragment = fragment.ok_or_else(|| format!("Fragment {name} was used, but not defined"))?;
                    let inside = self.selections(fragment.selection_set(), depth + 1)?;
                    selections.push(Selection::Fragment(type_of(fragment.type_condition()), inside));
                }
                cst::Selection::Field(_)
                | cst::Selection::InlineFragment(_)
                | cst::Selection::FragmentSpread(_) => {}
            }
        }
        Ok(selections)
    }

    fn field(&self, field: &cst::Field, depth: usize) -> Result<Field, String> {
        let name = text_of(field.name());
        let alias = field.alias().map(|alias| text_of(alias.name()));
        let start = field.syntax().text_range().start();
        Ok(Field {
            key: alias.unwrap_or_else(|| name.clone()),
            name,
            arguments: self.arguments(field.arguments()),
            selections: self.selections(field.selection_set(), depth + 1)?,
            location: place(self.text, start.into()),
        })
    }

    fn arguments(&self, arguments: Option<cst::Arguments>) -> Map<String, Value> {
        let arguments = arguments.into_iter().flat_map(|all| all.arguments());
        let pairs = arguments.map(|argument| (text_of(argument.name()), argument.value()));
        pairs.filter_map(|(name, value)| Some((name, self.value(&value?)))).collect()
    }

    /// `@skip` and `@include`.
    fn is_included(&self, directives: Option<cst::Directives>) -> bool {
        directives.into_iter().flat_map(|all| all.directives()).all(|directive| {
            let asked = self.arguments(directive.arguments()).get("if") == Some(&true.into());
            match text_of(directive.name()).as_str() {
                "skip" => !asked,
                "include" => asked,
                _ => true,
            }
        })
    }

    fn value(&self, value: &cst::Value) -> Value {
        match value {
            cst::Value::Variable(variable) => {
                self.variables.get(&text_of(variable.name())).cloned().unwrap_or_default()
            }
            cst::Value::StringValue(text) => String::from(text).into(),
            cst::Value::IntValue(number) => i32::try_from(number).map(Value::from).unwrap_or_default(),
            cst::Value::FloatValue(number) => {
                f64::try_from(number).ok().and_then(Number::from_f64).map(Value::Number).unwrap_or_default()
            }
            cst::Value::BooleanValue(value) => value.true_token().is_some().into(),
            cst::Value::NullValue(_) => Value::Null,
            cst::Value::EnumValue(value) => text_of(value.name()).into(),
            cst::Value::ListValue(list) => list.values().map(|value| self.value(&value)).collect(),
            cst::Value::ObjectValue(object) => {
                let fields = object.object_fields().map(|field| (text_of(field.name()), field.value()));
                fields.filter_map(|(name, value)| Some((name, self.value(&value?)))).collect()
            }
        }
    }
}

fn type_of(condition: Option<cst::TypeCondition>) -> Option<String> {
    Some(text_of(condition?.named_type()?.name()))
}

fn text_of(name: Option<cst::Name>) -> String {
    name.map(|name| name.text().to_string()).unwrap_or_default()
}

/// Line and column of an offset, counted from one.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}
