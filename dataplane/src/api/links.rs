//! URLs of the API, as they are when they lead to the door.
//!
//! A client follows what it finds in `Link`, in `Location` and in JSON, and sends its bearer only to the door: a URL that
//! led round the door would be asked for without one.

use std::sync::Arc;

use http::uri::{Authority, Scheme};

/// The path of GitHub Enterprise Server's API, and of the door's.
const API: &str = "/api/v3";
/// The path of its uploads, and of the door's.
const UPLOADS: &str = "/api/uploads";

/// Where the forge's API is and where it takes uploads, as its URLs begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bases {
    api: Arc<str>,
    uploads: Arc<str>,
}

impl Bases {
    /// The bases of the API at this URL. Uploads are beside it: `uploads.X` for `api.X`, else `/api/uploads` on the
    /// same host.
    #[must_use]
    pub fn new(scheme: &Scheme, authority: &Authority, path: &str) -> Self {
        // As a server writes them: it knows nothing of capitals, or of a port that goes without saying.
        let authority = authority.as_str().to_ascii_lowercase();
        let default_port = if *scheme == Scheme::HTTP { ":80" } else { ":443" };
        let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
        let path = path.trim_end_matches('/');
        let uploads = match (path.strip_suffix(API), authority.strip_prefix("api.")) {
            (Some(above), _) => format!("{scheme}://{authority}{above}{UPLOADS}"),
            (None, Some(domain)) => format!("{scheme}://uploads.{domain}"),
            (None, None) => format!("{scheme}://{authority}{UPLOADS}"),
        };
        Self { api: format!("{scheme}://{authority}{path}").into(), uploads: uploads.into() }
    }
}

/// How URLs of the API are written for a client that asked the door under one of its names.
#[derive(Debug, Clone)]
pub struct Links {
    /// The longer base first: it may begin with the other.
    pairs: [Pair; 2],
}

/// The beginning of a URL, and what takes its place.
#[derive(Debug, Clone)]
struct Pair {
    base: Arc<str>,
    door: Arc<str>,
}

impl Links {
    /// Links to the door under `host`: `NAME` or `NAME:PORT`, one of its public names.
    #[must_use]
    pub fn new(bases: &Bases, host: &str) -> Self {
        let pair =
            |base: &Arc<str>, path| Pair { base: Arc::clone(base), door: format!("https://{host}{path}").into() };
        let (api, uploads) = (pair(&bases.api, API), pair(&bases.uploads, UPLOADS));
        let longer = uploads.base.len() > api.base.len();
        Self { pairs: if longer { [uploads, api] } else { [api, uploads] } }
    }

    /// The URL as it leads to the door. None: it leads elsewhere, and not to the API.
    #[must_use]
    pub fn rewrite(&self, url: &str) -> Option<String> {
        self.pairs().find_map(|(base, door)| {
            let rest = url.strip_prefix(base)?;
            rest.bytes().next().is_none_or(ends_base).then(|| format!("{door}{rest}"))
        })
    }

    /// The value of a `Link` header (RFC 8288, section 3) whose targets in the API lead to the door. Other targets and
    /// all parameters stay as they are.
    #[must_use]
    pub fn link_header(&self, value: &str) -> String {
        let mut out = String::with_capacity(value.len() * 2);
        let mut rest = value;
        while !rest.is_empty() {
            let end = match rest.as_bytes() {
                [b'<', ..] => rest.find('>'),
                [b'"', ..] => quoted(rest),
                _ => rest.find(['<', '"']),
            };
            let (part, after) = end.and_then(|end| rest.split_at_checked(end)).unwrap_or((rest, ""));
            match part.strip_prefix('<').and_then(|target| self.rewrite(target)) {
                Some(url) => out.extend(["<", &url]),
                None => out.push_str(part),
            }
            rest = after;
        }
        out
    }

    /// Each base with what takes its place, in the order in which they are to be tried.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|Pair { base, door }| (&**base, &**door))
    }
}

/// Whether a base is over before this byte of a URL. `https://api.github.com.example` is another host.
#[must_use]
pub(super) fn ends_base(next: u8) -> bool {
    matches!(next, b'/' | b'?' | b'#')
}

/// The length of the quoted string that the text begins with (RFC 9110, section 5.6.4).
fn quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return Some(at + 1),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Uri;
    use proptest::prelude::*;

    fn bases(url: &str) -> Bases {
        let url: Uri = url.parse().unwrap();
        Bases::new(url.scheme().unwrap(), url.authority().unwrap(), url.path())
    }

    fn links(url: &str) -> Links {
        Links::new(&bases(url), "git.door.test")
    }

    #[test]
    fn uploads_are_beside_the_api() {
        for (given, api, uploads) in [
            ("https://api.github.com", "https://api.github.com", "https://uploads.github.com"),
            ("https://API.GitHub.com:443/", "https://api.github.com", "https://uploads.github.com"),
            ("https://api.octo.ghe.com", "https://api.octo.ghe.com", "https://uploads.octo.ghe.com"),
            ("https://ghes.corp/api/v3", "https://ghes.corp/api/v3", "https://ghes.corp/api/uploads"),
            ("https://ghes.corp/api/v3/", "https://ghes.corp/api/v3", "https://ghes.corp/api/uploads"),
            ("https://api.corp/api/v3", "https://api.corp/api/v3", "https://api.corp/api/uploads"),
            ("https://x.corp:8443/a/api/v3", "https://x.corp:8443/a/api/v3", "https://x.corp:8443/a/api/uploads"),
            ("https://localhost:4443", "https://localhost:4443", "https://localhost:4443/api/uploads"),
            ("http://127.0.0.1:80/x", "http://127.0.0.1/x", "http://127.0.0.1/api/uploads"),
            ("http://[::1]:443", "http://[::1]:443", "http://[::1]:443/api/uploads"),
        ] {
            assert_eq!(bases(given), Bases { api: api.into(), uploads: uploads.into() }, "{given}");
        }
    }

    #[test]
    fn a_url_of_the_api_leads_to_the_door() {
        for (base, url, door) in [
            ("https://api.github.com", "https://api.github.com", "https://git.door.test/api/v3"),
            ("https://api.github.com", "https://api.github.com/", "https://git.door.test/api/v3/"),
            ("https://api.github.com", "https://api.github.com/a?b#c", "https://git.door.test/api/v3/a?b#c"),
            ("https://api.github.com", "https://api.github.com?b", "https://git.door.test/api/v3?b"),
            ("https://api.github.com", "https://api.github.com#c", "https://git.door.test/api/v3#c"),
            ("https://api.github.com", "https://uploads.github.com/a", "https://git.door.test/api/uploads/a"),
            ("https://ghes.corp/api/v3", "https://ghes.corp/api/v3/a", "https://git.door.test/api/v3/a"),
            ("https://ghes.corp/api/v3", "https://ghes.corp/api/uploads/a", "https://git.door.test/api/uploads/a"),
            ("https://localhost:4", "https://localhost:4/api/uploads/a", "https://git.door.test/api/uploads/a"),
            (
                "https://localhost:4",
                "https://localhost:4/api/uploadsa",
                "https://git.door.test/api/v3/api/uploadsa",
            ),
            ("https://localhost:4", "https://localhost:4/api/upload", "https://git.door.test/api/v3/api/upload"),
        ] {
            assert_eq!(links(base).rewrite(url).as_deref(), Some(door), "{url}");
        }
        let localhost = Links::new(&bases("https://api.github.com"), "LocalHost:8443");
        let door = localhost.rewrite("https://api.github.com/a");
        assert_eq!(door.as_deref(), Some("https://LocalHost:8443/api/v3/a"));
    }

    #[test]
    fn a_url_of_another_host_or_path_leads_elsewhere() {
        for url in [
            "https://api.github.com.evil/",
            "https://api.github.comx",
            "https://api.github.com:8443/",
            "https://api.github.com@evil/",
            "https://api.github.com\\@evil/",
            "https://api.github.com%2f",
            "https://api.github.co",
            "http://api.github.com/",
            "HTTPS://api.github.com/",
            " https://api.github.com/",
            "//api.github.com/",
            "/repos",
            "https://github.com/",
            "https://git.door.test/api/v3/a",
            "",
        ] {
            assert_eq!(links("https://api.github.com").rewrite(url), None, "{url}");
        }
        assert_eq!(links("https://ghes.corp/api/v3").rewrite("https://ghes.corp/api/v34"), None);
        assert_eq!(links("https://ghes.corp/api/v3").rewrite("https://ghes.corp/o/r"), None);
    }

    #[test]
    fn every_entry_of_a_link_header_that_leads_to_the_api_is_rewritten() {
        let links = links("https://api.github.com");
        for (given, passed) in [
            (
                r#"<https://api.github.com/repositories/1/issues?page=2>; rel="next", <https://api.github.com/repositories/1/issues?page=9>; rel="last""#,
                r#"<https://git.door.test/api/v3/repositories/1/issues?page=2>; rel="next", <https://git.door.test/api/v3/repositories/1/issues?page=9>; rel="last""#,
            ),
            (
                "<https://api.github.com/a,b;c>;rel=next,<https://api.github.com>;rel=x",
                "<https://git.door.test/api/v3/a,b;c>;rel=next,<https://git.door.test/api/v3>;rel=x",
            ),
            (
                r#" <https://evil/<a>; title="x, <https://api.github.com/a>; \"<https://api.github.com/b>" , <https://uploads.github.com/c>"#,
                r#" <https://evil/<a>; title="x, <https://api.github.com/a>; \"<https://api.github.com/b>" , <https://git.door.test/api/uploads/c>"#,
            ),
            (
                r#"<https://api.github.com/"a>; x="\\", <https://api.github.com/b>"#,
                r#"<https://git.door.test/api/v3/"a>; x="\\", <https://git.door.test/api/v3/b>"#,
            ),
        ] {
            assert_eq!(links.link_header(given), passed);
        }
    }

    #[test]
    fn every_other_entry_stays_as_it_is() {
        for value in [
            "",
            ">",
            "<",
            "<>",
            "https://api.github.com/a",
            r#"<https://api.github.com.evil/>; rel="next""#,
            r#"</repositories/1?page=2>; rel="next""#,
            r#"<https://x/>; anchor="https://api.github.com/", <https://y/a,b>; title="ü, \\""#,
            r#"<https://x/>; title="not closed, <https://api.github.com/a>"#,
        ] {
            assert_eq!(links("https://api.github.com").link_header(value), value);
        }
    }

    proptest! {
        #[test]
        fn a_value_without_a_target_in_the_api_stays_as_it_is(value in r#"([<>",;\\ ü]|https://x/|rel=){0,30}"#) {
            prop_assert_eq!(links("https://api.github.com").link_header(&value), value);
        }
    }
}
