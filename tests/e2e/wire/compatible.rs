//! Whether a contract takes back what another has promised: held over what the `.proto` files describe.

use std::collections::BTreeMap;

use gitdoor_proto::descriptors::{GATE_LISTENER, RUNS_LISTENER};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
};

const PREVIOUS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/previous.binpb"));

/// All that a contract has, by its full name.
#[derive(Clone, Default)]
struct Contract {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
    methods: BTreeMap<String, MethodDescriptorProto>,
}

impl Contract {
    fn read(sets: &[&[u8]]) -> Self {
        let mut contract = Self::default();
        for set in sets {
            for file in FileDescriptorSet::decode(*set).unwrap().file {
                let package = file.package.unwrap_or_default();
                if !package.starts_with("gitdoor.") {
                    continue;
                }
                file.message_type.into_iter().for_each(|message| contract.take_in(&package, message));
                let named = |it: &EnumDescriptorProto| format!("{package}.{}", it.name());
                contract.enums.extend(file.enum_type.into_iter().map(|it| (named(&it), it)));
                for service in file.service {
                    let named =
                        |method: &MethodDescriptorProto| format!("{package}.{}/{}", service.name(), method.name());
                    contract.methods.extend(service.method.iter().map(|method| (named(method), method.clone())));
                }
            }
        }
        contract
    }

    fn take_in(&mut self, outer: &str, message: DescriptorProto) {
        let name = format!("{outer}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.take_in(&name, nested.clone()));
        let named = |it: &EnumDescriptorProto| format!("{name}.{}", it.name());
        self.enums.extend(message.enum_type.iter().map(|it| (named(it), it.clone())));
        self.messages.insert(name, message);
    }

    /// What `present` takes back of this.
    fn taken_back_by(&self, present: &Self) -> Vec<String> {
        let mut broken = Vec::new();
        for (name, message) in &self.messages {
            match present.messages.get(name) {
                None => broken.push(format!("{name} is gone")),
                Some(present) => fields(name, message, present, &mut broken),
            }
        }
        for (name, values) in &self.enums {
            match present.enums.get(name) {
                None => broken.push(format!("{name} is gone")),
                Some(present) => numbers(name, values, present, &mut broken),
            }
        }
        for (name, method) in &self.methods {
            if present.methods.get(name) != Some(method) {
                broken.push(format!("{name} is gone, or takes or gives something else"));
            }
        }
        broken
    }
}

/// What of a field is on the wire, or means something to who reads it.
fn shape(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let choice = field.oneof_index.and_then(|index| message.oneof_decl.get(usize::try_from(index).unwrap()));
    let choice = choice.map(|choice| choice.name().to_owned());
    let (kind, label, of) = (field.r#type(), field.label(), field.type_name());
    let packed = field.options.as_ref().and_then(|options| options.packed);
    format!("{}: {kind:?} {of} {label:?} {packed:?} in {choice:?}, {:?}", field.name(), field.proto3_optional())
}

fn fields(name: &str, previous: &DescriptorProto, present: &DescriptorProto, broken: &mut Vec<String>) {
    let reserved =
        |number: i32| present.reserved_range.iter().any(|range| (range.start()..range.end()).contains(&number));
    for field in &previous.field {
        let place = format!("{name}.{} = {}", field.name(), field.number());
        match present.field.iter().find(|other| other.number() == field.number()) {
            Some(other) if shape(present, other) == shape(previous, field) => {}
            Some(other) => broken.push(format!("{place} is now {}", shape(present, other))),
            None if reserved(field.number()) && present.reserved_name.iter().any(|it| it == field.name()) => {}
            None => broken.push(format!("{place} is gone, and not reserved by number and name")),
        }
    }
    for number in
        previous.reserved_range.iter().flat_map(|range| range.start()..range.end().min(range.start() + 100))
    {
        if !reserved(number) {
            broken.push(format!("{name}: {number} was reserved and is not"));
        }
    }
}

fn numbers(name: &str, previous: &EnumDescriptorProto, present: &EnumDescriptorProto, broken: &mut Vec<String>) {
    // The end of an enum's range is in it.
    let reserved =
        |number: i32| present.reserved_range.iter().any(|range| (range.start()..=range.end()).contains(&number));
    for value in &previous.value {
        let kept = match present.value.iter().find(|other| other.number() == value.number()) {
            Some(other) => other.name() == value.name(),
            None => reserved(value.number()) && present.reserved_name.iter().any(|it| it == value.name()),
        };
        if !kept {
            broken.push(format!("{name}.{} = {} is gone, or another's", value.name(), value.number()));
        }
    }
}

#[test]
fn the_contract_takes_nothing_back_of_the_previous_releases() {
    let previous = Contract::read(&[PREVIOUS]);
    let present = Contract::read(&[RUNS_LISTENER, GATE_LISTENER]);
    assert!(previous.messages.len() > 40 && previous.enums.len() >= 5 && previous.methods.len() >= 10);
    assert_eq!(previous.taken_back_by(&present), [""; 0]);
}

#[test]
fn whatever_a_contract_could_take_back_is_seen() {
    type Change = fn(&mut Contract);
    fn message<'a>(contract: &'a mut Contract, name: &str) -> &'a mut DescriptorProto {
        contract.messages.get_mut(&format!("gitdoor.v1.{name}")).unwrap()
    }
    fn reserve(message: &mut DescriptorProto, number: i32, name: &str) {
        let range = prost_types::descriptor_proto::ReservedRange { start: Some(number), end: Some(number + 1) };
        message.reserved_range.push(range);
        message.reserved_name.push(name.to_owned());
    }
    let whole = Contract::read(&[PREVIOUS]);
    let table: &[(&str, Change)] = &[
        ("gitdoor.v1.Lease is gone", |it| drop(it.messages.remove("gitdoor.v1.Lease"))),
        ("Token.age = 3 is gone", |it| drop(message(it, "Token").field.pop())),
        ("Token.id = 2 is now name", |it| message(it, "Token").field[1].name = Some("name".into())),
        ("Token.id = 2 is now id: Bytes", |it| {
            message(it, "Token").field[1].set_type(Type::Bytes);
        }),
        ("Token.id = 2 is now", |it| {
            message(it, "Token").field[1].set_label(Label::Repeated);
        }),
        ("Bound.repository = 1 is gone", |it| message(it, "Bound").field[0].number = Some(9)),
        ("Permit.token = 2 is now token: Message .gitdoor.v1.Run", |it| {
            message(it, "Permit").field[1].type_name = Some(".gitdoor.v1.Run".into());
        }),
        ("AuthorizeResponse.permit = 1 is now", |it| message(it, "AuthorizeResponse").field[0].oneof_index = None),
        ("RunState.RUN_STATE_LIVE = 1 is gone", |it| {
            it.enums.get_mut("gitdoor.v1.RunState").unwrap().value[1].name = Some("RUN_STATE_ALIVE".into());
        }),
        ("RunState.RUN_STATE_EXPIRED = 3 is gone", |it| {
            drop(it.enums.get_mut("gitdoor.v1.RunState").unwrap().value.pop());
        }),
        ("gitdoor.v1.Identity is gone", |it| drop(it.enums.remove("gitdoor.v1.Identity"))),
        ("gitdoor.v1.Gate/Authorize is gone", |it| drop(it.methods.remove("gitdoor.v1.Gate/Authorize"))),
        ("gitdoor.v1.Gate/Session is gone", |it| {
            it.methods.get_mut("gitdoor.v1.Gate/Session").unwrap().client_streaming = Some(false);
        }),
        ("gitdoor.v1.Runs/GetRun is gone", |it| {
            it.methods.get_mut("gitdoor.v1.Runs/GetRun").unwrap().output_type = Some(".gitdoor.v1.Run".into());
        }),
    ];
    for (words, change) in table {
        let mut changed = whole.clone();
        change(&mut changed);
        let broken = whole.taken_back_by(&changed);
        assert!(broken.len() == 1 && broken[0].contains(words), "{words}: {broken:?}");
    }
    // Given up in form, and then taken for something else.
    let mut given_up = whole.clone();
    let field = message(&mut given_up, "Token").field.pop().unwrap();
    reserve(message(&mut given_up, "Token"), field.number(), field.name());
    assert_eq!(whole.taken_back_by(&given_up), [""; 0]);
    let broken = given_up.taken_back_by(&whole);
    assert!(broken.len() == 1 && broken[0].contains("3 was reserved and is not"), "{broken:?}");
}
