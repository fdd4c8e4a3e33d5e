//! Which hosts the storage is.

use std::str::FromStr;

use url::{Host, Url};

use super::address::is_public;

/// A host of the storage: `NAME`, `*.NAME` for every name beneath it, or `NAME:PORT` for one of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageHost {
    name: String,
    /// Every name beneath `name`, and not itself.
    beneath: bool,
    /// A port that was named; with it the host may have a private address.
    port: Option<u16>,
}

/// Text that is no host of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a storage host is NAME, *.NAME, or NAME:PORT for one with a private address")]
pub struct InvalidStorageHost;

impl FromStr for StorageHost {
    type Err = InvalidStorageHost;

    fn from_str(text: &str) -> Result<Self, InvalidStorageHost> {
        let (beneath, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let url = Url::parse(&format!("https://{rest}/")).map_err(|_not_a_host| InvalidStorageHost)?;
        let (bare, port) = match rest.rsplit_once(':') {
            Some((bare, digits)) if !digits.ends_with(']') => {
                (bare, Some(digits.parse::<u16>().map_err(|_no_port| InvalidStorageHost)?))
            }
            Some(_) | None => (rest, None),
        };
        let host = url.host_str().ok_or(InvalidStorageHost)?;
        let legal = |b: u8| b.is_ascii_alphanumeric() || b".-_[]:".contains(&b);
        // What is more than a host, or is another one once it was read, is refused.
        if !host.eq_ignore_ascii_case(bare)
            || !host.bytes().all(legal)
            || (beneath && (port.is_some() || !host.contains('.')))
        {
            return Err(InvalidStorageHost);
        }
        Ok(Self { name: host.to_owned(), beneath, port })
    }
}

impl StorageHost {
    /// Whether a URL leads to it, and to nothing that is not the storage's.
    pub(super) fn is(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let named = match host.strip_suffix(self.name.as_str()) {
            Some("") => !self.beneath,
            Some(before) => self.beneath && before.ends_with('.'),
            None => false,
        };
        let public = match url.host() {
            Some(Host::Ipv4(address)) => is_public(address.into()),
            Some(Host::Ipv6(address)) => is_public(address.into()),
            // What a name stands for is judged when it is resolved.
            Some(Host::Domain(_)) | None => true,
        };
        named
            && url.scheme() == "https"
            && url.username().is_empty()
            && url.password().is_none()
            && url.port_or_known_default() == Some(self.port.unwrap_or(443))
            && (public || self.port.is_some())
    }

    /// Whether its address may be private.
    pub(super) fn is_private(&self) -> bool {
        self.port.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(host: &str, url: &str) -> bool {
        host.parse::<StorageHost>().unwrap().is(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_name_is_itself_and_a_star_is_what_lies_beneath() {
        assert!(is("codeload.github.com", "https://codeload.github.com/o/r/tar.gz/main?token=x"));
        assert!(is("Codeload.github.com", "https://CODELOAD.github.com:443/x"));
        assert!(is("*.blob.core.windows.net", "https://a.b.blob.core.windows.net/x?sig=y"));
        for (host, url) in [
            ("codeload.github.com", "https://x.codeload.github.com/"),
            ("codeload.github.com", "https://codeload.github.com.evil.test/"),
            ("codeload.github.com", "https://codeload.github.com./"),
            ("codeload.github.com", "http://codeload.github.com/"),
            ("codeload.github.com", "https://codeload.github.com:8443/"),
            ("codeload.github.com", "https://u@codeload.github.com/"),
            ("codeload.github.com", "https://u:p@codeload.github.com/"),
            ("*.blob.core.windows.net", "https://blob.core.windows.net/"),
            ("*.blob.core.windows.net", "https://evilblob.core.windows.net/"),
            ("*.blob.core.windows.net", "https://a.blob.core.windows.net.evil.test/"),
            ("*.blob.core.windows.net", "ftp://a.blob.core.windows.net/"),
        ] {
            assert!(!is(host, url), "{host} is not {url}");
        }
    }

    #[test]
    fn a_private_address_is_the_storages_only_where_its_port_was_named() {
        assert!(!is("10.0.0.1", "https://10.0.0.1/"));
        assert!(!is("10.0.0.1", "https://167772161/"));
        assert!(!is("[::1]", "https://[::1]/"));
        assert!(is("10.0.0.1:9000", "https://10.0.0.1:9000/"));
        assert!(is("[::1]:9000", "https://[::1]:9000/"));
        assert!(is("localhost:443", "https://localhost/"));
        assert!(!is("localhost:9000", "https://localhost/"));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in
            ["", "*", "*.", "*.com", "a b", "https://x", "x/y", "u@x", "x:", "x:y", "x:99999", "*.x.y:1", "0x7f.1"]
        {
            assert_eq!(text.parse::<StorageHost>(), Err(InvalidStorageHost), "{text:?}");
        }
    }
}
