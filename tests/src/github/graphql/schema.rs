//! The excerpt of GitHub's schema: types, their fields, and what each field is.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use apollo_parser::cst;

/// A named type.
#[derive(Debug, Default)]
pub(crate) struct Type {
    /// As introspection names it: `OBJECT`, `ENUM`, ...
    pub(crate) kind: &'static str,
    pub(crate) fields: BTreeMap<String, FieldType>,
    /// The values of an enum.
    pub(crate) values: Vec<String>,
    /// What an object implements, or what a union may be.
    related: Vec<String>,
}

/// The type of a field, and whether it is on its way out.
#[derive(Debug)]
pub(crate) struct FieldType {
    pub(crate) shape: Shape,
    pub(crate) deprecated: bool,
}

/// A type with what stands around its name.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Named(String),
    List(Box<Shape>),
    Required(Box<Shape>),
}

impl Shape {
    /// The name alone.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::List(inner) | Self::Required(inner) => inner.name(),
        }
    }
}

/// All types.
pub(crate) struct Schema(pub(crate) BTreeMap<String, Type>);

/// The one schema there is.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("schema.graphql")));

impl Schema {
    fn parse(text: &str) -> Self {
        let tree = apollo_parser::Parser::new(text).parse();
        assert_eq!(tree.errors().next(), None, "the schema is well formed");
        let mut types = BTreeMap::new();
        for (name, builtin) in ["Boolean", "Float", "ID", "Int", "String"].map(|name| (name, Type::scalar())) {
            types.insert(name.to_owned(), builtin);
        }
        for definition in tree.document().definitions() {
            let name = definition.name().map(|name| name.text().to_string()).unwrap_or_default();
            types.insert(name, Type::read(&definition));
        }
        Self(types)
    }

    /// A field of a type.
    pub(crate) fn field(&self, of: &str, name: &str) -> Option<&FieldType> {
        self.0.get(of)?.fields.get(name)
    }

    /// True for a type that has fields, or may be one of several that have.
    pub(crate) fn is_composite(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|known| ["OBJECT", "INTERFACE", "UNION"].contains(&known.kind))
    }

    /// Whether a fragment on one type is for objects of another.
    pub(crate) fn is_a(&self, concrete: &str, condition: &str) -> bool {
        let related = |one: &str, other: &str| {
            self.0.get(one).is_some_and(|known| known.related.iter().any(|name| name == other))
        };
        let member =
            self.0.get(condition).is_some_and(|known| known.kind == "UNION") && related(condition, concrete);
        concrete == condition || related(concrete, condition) || member
    }
}

impl Type {
    fn scalar() -> Self {
        Self { kind: "SCALAR", ..Self::default() }
    }

    fn read(definition: &cst::Definition) -> Self {
        if let cst::Definition::ObjectTypeDefinition(object) = definition {
            let interfaces = object.implements_interfaces().into_iter().flat_map(|all| all.named_types());
            let related = interfaces.map(|name| name_of(name.name())).collect();
            Self { kind: "OBJECT", fields: fields(object.fields_definition()), related, ..Self::default() }
        } else if let cst::Definition::InterfaceTypeDefinition(interface) = definition {
            Self { kind: "INTERFACE", fields: fields(interface.fields_definition()), ..Self::default() }
        } else if let cst::Definition::UnionTypeDefinition(union) = definition {
            let members = union.union_member_types().into_iter().flat_map(|all| all.named_types());
            Self { kind: "UNION", related: members.map(|name| name_of(name.name())).collect(), ..Self::default() }
        } else if let cst::Definition::EnumTypeDefinition(definition) = definition {
            let values =
                definition.enum_values_definition().into_iter().flat_map(|all| all.enum_value_definitions());
            let values = values.filter_map(|value| Some(name_of(value.enum_value()?.name()))).collect();
            Self { kind: "ENUM", values, ..Self::default() }
        } else {
            Self::scalar()
        }
    }
}

fn fields(definitions: Option<cst::FieldsDefinition>) -> BTreeMap<String, FieldType> {
    let definitions = definitions.into_iter().flat_map(|all| all.field_definitions());
    let fields = definitions.filter_map(|field| {
        let shape = shape(&field.ty()?);
        Some((name_of(field.name()), FieldType { shape, deprecated: field.directives().is_some() }))
    });
    fields.collect()
}

fn shape(written: &cst::Type) -> Shape {
    match written {
        cst::Type::NamedType(named) => Shape::Named(name_of(named.name())),
        cst::Type::ListType(list) => Shape::List(Box::new(listed(list))),
        cst::Type::NonNullType(inner) => {
            let named = || Shape::Named(name_of(inner.named_type().and_then(|named| named.name())));
            let list = inner.list_type().map(|list| Shape::List(Box::new(listed(&list))));
            Shape::Required(Box::new(list.unwrap_or_else(named)))
        }
    }
}

fn listed(list: &cst::ListType) -> Shape {
    list.ty().as_ref().map_or_else(|| Shape::Named(String::new()), shape)
}

fn name_of(name: Option<cst::Name>) -> String {
    name.map(|name| name.text().to_string()).unwrap_or_default()
}
