//! The names that the door answers to: a request for any other host is misdirected (421).

use std::str::FromStr;

use http::Request;

use crate::headers;
use crate::refusal::Refusal;

/// The public names, each with the ports that it is asked for under.
#[derive(Debug, Clone)]
pub struct PublicHosts {
    hosts: Vec<PublicHost>,
    /// The port that is served.
    served: Option<u16>,
}

/// A port that a URL leaves out.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// `NAME` or `NAME:PORT`. Without a port the default ports and the port that is served are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicHost {
    name: String,
    port: Option<u16>,
}

/// Text that is no public host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a public host is NAME or NAME:PORT, as clients write it in a URL")]
pub struct InvalidHost;

impl FromStr for PublicHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let (name, port) = split(text).ok_or(InvalidHost)?;
        let legal = |b: u8| b.is_ascii_alphanumeric() || b".-_[]:".contains(&b);
        if name.is_empty() || !name.bytes().all(legal) {
            return Err(InvalidHost);
        }
        Ok(Self { name: name.to_ascii_lowercase(), port })
    }
}

/// Splits a port off; an IPv6 address in brackets has colons of its own.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let digits = port.bytes().all(|b| b.is_ascii_digit());
            (digits && (!name.contains(':') || name.ends_with(']'))).then_some((name, Some(port.parse().ok()?)))
        }
        Some(_) | None => Some((text, None)),
    }
}

impl PublicHosts {
    /// The names of a listener that bound the port `served`.
    #[must_use]
    pub fn new(hosts: Vec<PublicHost>, served: Option<u16>) -> Self {
        Self { hosts, served }
    }

    /// Checks that a request is for this door.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let asked = headers::host(request.uri(), request.headers()).and_then(split).ok_or(Refusal::Host)?;
        if self.hosts.iter().any(|host| self.is(host, asked)) { Ok(()) } else { Err(Refusal::Host) }
    }

    fn is(&self, host: &PublicHost, (name, port): (&str, Option<u16>)) -> bool {
        // A shim in front may speak TLS where this listener does not, so either scheme's default is no port at all.
        let given = |port: Option<u16>| port.filter(|port| !DEFAULT_PORTS.contains(port));
        let meant = given(host.port) == given(port) || (host.port.is_none() && port == self.served);
        meant && host.name.eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(public: &str, host: &str) -> bool {
        let hosts = PublicHosts::new(vec![public.parse().unwrap()], Some(8443));
        let request = Request::builder().uri("/").header("host", host).body(()).unwrap();
        hosts.check(&request).is_ok()
    }

    #[test]
    fn a_host_compares_without_case_and_without_its_default_port() {
        for host in ["git.door.test", "GIT.door.TEST", "git.door.test:443", "git.door.test:8443"] {
            assert!(asked("Git.Door.test", host), "{host}");
        }
        assert!(asked("git.door.test:9000", "git.door.test:9000"));
        assert!(asked("[::1]", "[::1]:8443"));
    }

    #[test]
    fn any_other_host_is_misdirected() {
        for host in ["door.test", "git.door.test.evil", "git.door.test:81", "git.door.test:", "a@git.door.test", ""]
        {
            assert!(!asked("git.door.test", host), "{host}");
        }
        assert!(!asked("git.door.test:9000", "git.door.test"));
        assert!("a b".parse::<PublicHost>().is_err());
        assert!("a:b".parse::<PublicHost>().is_err());
    }
}
