//! Who may make which call. A client's certificate names its roles; the table here says what each may do, and a call
//! that it does not name is nobody's.
//!
//! What listens on loopback or on a Unix socket without TLS knows no roles: who reaches it may make every call.

pub mod layer;

use std::fmt;

use rustls_pki_types::CertificateDer;

/// What a client of control may be. In its certificate: a URI among the subject's alternative names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Owns runs.
    Bot,
    /// Looks at runs, and ends them.
    Ops,
    /// Keeps clones.
    Mirror,
    /// Carries requests.
    Dataplane,
}

impl Role {
    const ALL: [Self; 4] = [Self::Bot, Self::Ops, Self::Mirror, Self::Dataplane];

    /// The URI that names it in a certificate.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Bot => "gitdoor:bot",
            Self::Ops => "gitdoor:ops",
            Self::Mirror => "gitdoor:mirror",
            Self::Dataplane => "gitdoor:dataplane",
        }
    }

    /// Its name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bot => "bot",
            Self::Ops => "ops",
            Self::Mirror => "mirror",
            Self::Dataplane => "dataplane",
        }
    }
}

/// A set of roles.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(u8);

impl Roles {
    /// These roles.
    #[must_use]
    pub const fn of(roles: &[Role]) -> Self {
        let mut set = 0;
        let mut rest = roles;
        while let [first, others @ ..] = rest {
            set |= 1 << *first as u8;
            rest = others;
        }
        Self(set)
    }

    /// The roles that a certificate names, whose chain was verified. It may name other URIs, too.
    #[must_use]
    pub fn in_certificate(certificate: &CertificateDer<'_>) -> Self {
        let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else {
            return Self::default();
        };
        let named: Vec<&str> = certificate.valid_uri_names().collect();
        let roles: Vec<Role> = Role::ALL.into_iter().filter(|role| named.contains(&role.uri())).collect();
        Self::of(&roles)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn each(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| !self.and(Self::of(&[*role])).is_empty())
    }

    /// Its label in metrics.
    fn as_str(self) -> &'static str {
        let mut each = self.each();
        match (each.next(), each.next()) {
            (None, _) => "none",
            (Some(role), None) => role.as_str(),
            (Some(_), Some(_)) => "several",
        }
    }
}

/// As a sentence has them: `gitdoor:bot or gitdoor:ops`.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.each().enumerate().try_for_each(|(at, role)| {
            f.write_str(if at == 0 { "" } else { " or " }).and_then(|()| f.write_str(role.uri()))
        })
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roles({self})")
    }
}

/// A listener with roles of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where runs are owned.
    Runs,
    /// Where data planes ask.
    Gate,
}

impl Side {
    /// The roles that have anything to do here.
    #[must_use]
    pub const fn roles(self) -> Roles {
        match self {
            Self::Runs => Roles::of(&[Role::Bot, Role::Ops, Role::Mirror]),
            Self::Gate => Roles::of(&[Role::Dataplane]),
        }
    }

    /// Its label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Gate => "gate",
        }
    }
}

const BOT: Roles = Roles::of(&[Role::Bot]);
const BOT_AND_OPS: Roles = Roles::of(&[Role::Bot, Role::Ops]);
const MIRROR: Roles = Roles::of(&[Role::Mirror]);
const MIRROR_AND_OPS: Roles = Roles::of(&[Role::Mirror, Role::Ops]);
const DATAPLANE: Roles = Roles::of(&[Role::Dataplane]);

/// Which roles may make which call, by the path of gRPC. A method that is added is refused until it stands here.
const CALLS: &[(&str, Roles)] = &[
    ("/gitdoor.v1.Runs/RegisterRun", BOT),
    ("/gitdoor.v1.Runs/AdoptRun", BOT),
    ("/gitdoor.v1.Runs/RotateBearer", BOT),
    ("/gitdoor.v1.Runs/RevokeRun", BOT_AND_OPS),
    ("/gitdoor.v1.Runs/GetRun", BOT_AND_OPS),
    ("/gitdoor.v1.Runs/ListRuns", BOT_AND_OPS),
    ("/gitdoor.v1.Tokens/MintMirrorToken", MIRROR),
    ("/gitdoor.v1.Tokens/ListMirrorTokens", MIRROR_AND_OPS),
    ("/gitdoor.v1.Gate/Session", DATAPLANE),
    ("/gitdoor.v1.Gate/Authorize", DATAPLANE),
];

/// Services for every role of a listener: they tell what it serves, and whether it does.
const FOR_ALL: &[&str] = &[
    "/grpc.health.v1.Health/",
    "/grpc.reflection.v1.ServerReflection/",
    "/grpc.reflection.v1alpha.ServerReflection/",
];

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The certificate has not the role.
    #[error("this call is for a certificate with the URI {needed}; yours has {}", Having(*.has))]
    Role {
        /// One of these.
        needed: Roles,
        /// What the certificate has.
        has: Roles,
    },
    /// The table does not know the call.
    #[error("no role may make this call; a client of the same version as control makes none such")]
    Unnamed,
}

struct Having(Roles);

impl fmt::Display for Having {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("no role of gitdoor") } else { write!(f, "{}", self.0) }
    }
}

/// Whether a certificate with these roles may make a call at a listener.
pub fn judge(side: Side, path: &str, has: Roles) -> Result<(), Denied> {
    let named = CALLS.iter().find(|(call, _)| *call == path).map(|(_, roles)| *roles);
    let for_all = FOR_ALL.iter().any(|service| path.starts_with(service)).then(|| side.roles());
    let needed = named.or(for_all).ok_or(Denied::Unnamed)?;
    // A role of the other listener is worth nothing here, although the same authority may have signed it.
    if has.and(needed).and(side.roles()).is_empty() { Err(Denied::Role { needed, has }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every call that the `.proto` files declare, by its path.
    fn declared() -> Vec<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/proto/gitdoor/v1");
        let mut calls = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let mut service = String::new();
            for line in text.lines().map(str::trim_start) {
                if let Some(name) = line.strip_prefix("service ") {
                    name.trim_end_matches([' ', '{']).clone_into(&mut service);
                } else if let Some(method) = line.strip_prefix("rpc ") {
                    calls.push(format!("/gitdoor.v1.{service}/{}", method.split('(').next().unwrap()));
                }
            }
        }
        calls
    }

    #[test]
    fn every_call_that_is_declared_stands_in_the_table() {
        let declared = declared();
        assert!(declared.contains(&"/gitdoor.v1.Gate/Session".to_owned()), "{declared:?}");
        for call in declared {
            assert_eq!(CALLS.iter().filter(|(named, _)| *named == call).count(), 1, "{call}");
        }
    }

    #[test]
    fn each_role_may_make_its_calls_and_no_other() {
        let may = |side, role, path: &str| judge(side, path, Roles::of(&[role])).is_ok();
        for call in ["RegisterRun", "RotateBearer", "RevokeRun", "GetRun", "ListRuns", "AdoptRun"] {
            let path = format!("/gitdoor.v1.Runs/{call}");
            assert!(may(Side::Runs, Role::Bot, &path), "{call}");
            let read = matches!(call, "RevokeRun" | "GetRun" | "ListRuns");
            assert_eq!(may(Side::Runs, Role::Ops, &path), read, "{call}");
            assert!(!may(Side::Runs, Role::Mirror, &path) && !may(Side::Runs, Role::Dataplane, &path), "{call}");
        }
        for (role, right) in
            [(Role::Bot, false), (Role::Ops, false), (Role::Mirror, true), (Role::Dataplane, false)]
        {
            assert_eq!(may(Side::Runs, role, "/gitdoor.v1.Tokens/MintMirrorToken"), right, "{role:?}");
            let reads = right || role == Role::Ops;
            assert_eq!(may(Side::Runs, role, "/gitdoor.v1.Tokens/ListMirrorTokens"), reads, "{role:?}");
        }
        for call in ["/gitdoor.v1.Gate/Session", "/gitdoor.v1.Gate/Authorize"] {
            assert!(may(Side::Gate, Role::Dataplane, call) && !may(Side::Gate, Role::Bot, call), "{call}");
            assert!(!may(Side::Runs, Role::Dataplane, call), "{call}");
        }
    }

    #[test]
    fn health_and_reflection_are_for_the_roles_of_the_listener() {
        for path in ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] {
            assert_eq!(judge(Side::Runs, path, Roles::of(&[Role::Ops])), Ok(()));
            assert_eq!(judge(Side::Gate, path, Roles::of(&[Role::Dataplane])), Ok(()));
            assert!(judge(Side::Gate, path, Roles::of(&[Role::Ops])).is_err());
            assert!(judge(Side::Runs, path, Roles::default()).is_err());
        }
    }

    #[test]
    fn a_call_that_the_table_does_not_name_is_nobodys() {
        let all = Roles::of(&Role::ALL);
        for path in ["/gitdoor.v1.Runs/DropRuns", "/gitdoor.v1.Runs/", "", "/", "/gitdoor.v1.Runs/GetRun/", "/x/y"]
        {
            assert_eq!(judge(Side::Runs, path, all), Err(Denied::Unnamed), "{path}");
        }
    }

    #[test]
    fn a_refusal_names_the_role_that_is_needed() {
        let said = |has| judge(Side::Runs, "/gitdoor.v1.Runs/GetRun", has).unwrap_err().to_string();
        let needed = "this call is for a certificate with the URI gitdoor:bot or gitdoor:ops; yours has ";
        assert_eq!(said(Roles::default()), format!("{needed}no role of gitdoor"));
        assert_eq!(said(Roles::of(&[Role::Dataplane])), format!("{needed}gitdoor:dataplane"));
    }
}
