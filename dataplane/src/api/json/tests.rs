//! Each rule by example, at every chunking; documents at random are in a file of their own.

mod documents;

use super::place::LEVELS;
use super::*;
use crate::api::links::Bases;
use http::Uri;

/// A base of the API, that of its uploads, and what both become.
type Forge = [(&'static str, &'static str); 2];

const DOOR: &str = "https://git.door.test/api/v3";
const DOOR_UPLOADS: &str = "https://git.door.test/api/uploads";
const GITHUB: Forge = [("https://api.github.com", DOOR), ("https://uploads.github.com", DOOR_UPLOADS)];
const ENTERPRISE: Forge = [("https://ghes.corp/api/v3", DOOR), ("https://ghes.corp/api/uploads", DOOR_UPLOADS)];
/// The uploads' base begins with the API's.
const LOCAL: Forge = [("https://localhost:4443", DOOR), ("https://localhost:4443/api/uploads", DOOR_UPLOADS)];

fn links(forge: Forge) -> Links {
    let url: Uri = forge[0].0.parse().unwrap();
    let bases = Bases::new(url.scheme().unwrap(), url.authority().unwrap(), url.path());
    Links::new(&bases, "git.door.test")
}

fn rewrite_chunks<'a>(changes: &Changes, chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, TooDeep> {
    let longest = changes.links.iter().flat_map(Links::pairs).map(|(base, _)| base.len()).max().unwrap_or(17);
    let mut rewriter = Rewriter::new(changes.clone());
    let mut sent = Vec::new();
    for chunk in chunks {
        sent.extend_from_slice(&rewriter.push(chunk)?);
        // Every character may be an escape of six bytes, and the one behind tells whether it is a prefix.
        assert!(rewriter.held.len() < 6 * (longest + 1), "{} bytes are held", rewriter.held.len());
    }
    sent.extend_from_slice(&rewriter.finish()?);
    Ok(sent)
}

/// What comes out, having made sure that it does so at every chunk size and when cut in two anywhere.
fn rewrite(changes: &Changes, input: &str) -> String {
    let whole = rewrite_chunks(changes, [input.as_bytes()]).unwrap();
    for at in 0..input.len() {
        let (head, tail) = input.as_bytes().split_at(at);
        assert_eq!(rewrite_chunks(changes, [head, b"", tail]).as_ref(), Ok(&whole), "{input} cut at {at}");
        assert_eq!(
            rewrite_chunks(changes, input.as_bytes().chunks(at + 1)).as_ref(),
            Ok(&whole),
            "{input} by {at}"
        );
    }
    String::from_utf8(whole).unwrap()
}

#[track_caller]
fn check(changes: &Changes, cases: &[(&str, &str)]) {
    for (given, passed) in cases {
        assert_eq!(rewrite(changes, given), *passed, "{given}");
    }
}

fn linked(forge: Forge) -> Changes {
    Changes { links: Some(links(forge)), version: None }
}

#[test]
fn a_value_that_begins_with_a_url_of_the_api_leads_to_the_door() {
    check(
        &linked(GITHUB),
        &[
            (r#""https://api.github.com""#, r#""https://git.door.test/api/v3""#),
            (r#"{"url":"https://api.github.com/a?b#c"}"#, r#"{"url":"https://git.door.test/api/v3/a?b#c"}"#),
            (r#"["https://api.github.com/","x"]"#, r#"["https://git.door.test/api/v3/","x"]"#),
            (
                "[ \"https://api.github.com?a\" ,\n\t\"https://api.github.com#a\"]\r\n",
                "[ \"https://git.door.test/api/v3?a\" ,\n\t\"https://git.door.test/api/v3#a\"]\r\n",
            ),
            (
                r#"{"upload_url":"https://uploads.github.com/a{?name,label}"}"#,
                r#"{"upload_url":"https://git.door.test/api/uploads/a{?name,label}"}"#,
            ),
            (
                r#"{"a":{"b":[[{"c":"https://api.github.com/d"}]]}}"#,
                r#"{"a":{"b":[[{"c":"https://git.door.test/api/v3/d"}]]}}"#,
            ),
            (
                r#""https://api.github.com/\ud83d\uDE00\n\/ü\"""#,
                r#""https://git.door.test/api/v3/\ud83d\uDE00\n\/ü\"""#,
            ),
        ],
    );
    check(
        &linked(ENTERPRISE),
        &[
            (r#"["https://ghes.corp/api/v3/a"]"#, r#"["https://git.door.test/api/v3/a"]"#),
            (r#"["https://ghes.corp/api/uploads/a"]"#, r#"["https://git.door.test/api/uploads/a"]"#),
            (
                r#"["https://ghes.corp/api/v34","https://ghes.corp/o/r"]"#,
                r#"["https://ghes.corp/api/v34","https://ghes.corp/o/r"]"#,
            ),
        ],
    );
    check(
        &linked(LOCAL),
        &[
            (r#"["https://localhost:4443/api/uploads/a"]"#, r#"["https://git.door.test/api/uploads/a"]"#),
            (r#"["https://localhost:4443/api/uploads"]"#, r#"["https://git.door.test/api/uploads"]"#),
            (r#"["https://localhost:4443/api/uploadsa"]"#, r#"["https://git.door.test/api/v3/api/uploadsa"]"#),
            (r#"["https://localhost:4443/api/up"]"#, r#"["https://git.door.test/api/v3/api/up"]"#),
            (r#"["https://localhost:4443/api\/up\u006coads"]"#, r#"["https://git.door.test/api/uploads"]"#),
        ],
    );
}

#[test]
fn escapes_are_seen_through() {
    check(
        &linked(GITHUB),
        &[
            (r#""https:\/\/api.github.com\/a\/b""#, r#""https://git.door.test/api/v3\/a\/b""#),
            (r#""\u0068ttps://api.github.co\u006D/a""#, r#""https://git.door.test/api/v3/a""#),
            (r#""\u0068ttps://api.github.co\u006d\u002Fa""#, r#""https://git.door.test/api/v3\u002Fa""#),
            (r#""https://api.github.com\u003fa""#, r#""https://git.door.test/api/v3\u003fa""#),
            // Another character, which is written alike.
            (r#""\u0168ttps://api.github.com/a""#, r#""\u0168ttps://api.github.com/a""#),
            (r#""\ud83dhttps://api.github.com/a""#, r#""\ud83dhttps://api.github.com/a""#),
            (r#""https:\\/\\/api.github.com\\/a""#, r#""https:\\/\\/api.github.com\\/a""#),
            (r#""\u0022https://api.github.com/""#, r#""\u0022https://api.github.com/""#),
            (r#""https://api.github.com\u0022/""#, r#""https://api.github.com\u0022/""#),
            (r#""https://api.github.com\n/""#, r#""https://api.github.com\n/""#),
            (r#""https://api.github.com\u012f/""#, r#""https://api.github.com\u012f/""#),
        ],
    );
}

#[test]
fn keys_other_hosts_and_urls_inside_a_text_stay_as_they_are() {
    for text in [
        r#"{"https://api.github.com/a":1,"https://api.github.com":{"https://api.github.com/":[]}}"#,
        r#"["https://api.github.com.evil/","https://api.github.comx","https://api.github.com:1/","https://api.github.com@evil/"]"#,
        r#"["see https://api.github.com/a"," https://api.github.com/","HTTPS://api.github.com/","http://api.github.com/"]"#,
        r#"["https://git.door.test/api/v3/a","https://github.com/a","https://api.github.co","https:","h",""]"#,
        r#"["\"https://api.github.com/","\\","\\\"",",\"https://api.github.com/a\"","{\"temp_clone_token\":\"x\"}"]"#,
    ] {
        assert_eq!(rewrite(&linked(GITHUB), text), text);
    }
    let text = r#"{"a":"https://api.github.com/a"}"#;
    assert_eq!(rewrite(&Changes::default(), text), text);
}

#[test]
fn a_clone_token_goes_at_any_depth_and_however_its_key_is_written() {
    let cases = [
        (r#"{"temp_clone_token":"ghs_x"}"#, r#"{"temp_clone_token":""}"#),
        (r#"[{"a":{"temp_clone_token" : "x\"y\\"} }]"#, r#"[{"a":{"temp_clone_token" : ""} }]"#),
        (r#"{"temp\u005fclone_tok\u0065n":"x","a":"y"}"#, r#"{"temp\u005fclone_tok\u0065n":"","a":"y"}"#),
        (r#"{"temp_clone_token":"x","temp_clone_token":"y"}"#, r#"{"temp_clone_token":"","temp_clone_token":""}"#),
        (r#"{"temp_clone_token":null,"a":"x"}"#, r#"{"temp_clone_token":null,"a":"x"}"#),
        (r#"{"temp_clone_token":12,"a":"x"}"#, r#"{"temp_clone_token":12,"a":"x"}"#),
        (r#"{"temp_clone_token":["x",1,["y"]],"a":"b"}"#, r#"{"temp_clone_token":["",1,[""]],"a":"b"}"#),
        (r#"{"temp_clone_token":{"a":"x","b":[{"c":"y"}]}}"#, r#"{"temp_clone_token":{"a":"","b":[{"c":""}]}}"#),
        (r#"{"temp_clone_token":{"temp_clone_token":"x"}}"#, r#"{"temp_clone_token":{"temp_clone_token":""}}"#),
        (r#"{"temp_clone_token":{"download_url":"x?y"}}"#, r#"{"temp_clone_token":{"download_url":""}}"#),
        (r#"{"temp_clone_token":"https://api.github.com/a"}"#, r#"{"temp_clone_token":""}"#),
        (r#"{"temp_clone_token":[],"a":["x"]}"#, r#"{"temp_clone_token":[],"a":["x"]}"#),
    ];
    check(&linked(GITHUB), &cases);
    check(&Changes::default(), &cases);
}

#[test]
fn what_only_looks_like_the_key_of_a_clone_token_passes() {
    for text in [
        r#"{"a":"temp_clone_token","b":"x"}"#,
        r#"["temp_clone_token","x"]"#,
        r#"{"temp_clone_tokens":"x","temp_clone_toke":"x","temp_clone_token\"":"x"}"#,
        r#"{"\\u0074emp_clone_token":"x","temp_clone_token\u0000":"x"}"#,
        r#"{"Temp_clone_token":"x"," temp_clone_token":"x","":"x"}"#,
        r#"{"a":{"temp_clone_token":null},"b":"x"}"#,
    ] {
        assert_eq!(rewrite(&linked(GITHUB), text), text);
    }
}

#[test]
fn a_download_url_loses_its_query() {
    let cases = [
        (r#"{"download_url":"https://raw.test/f?token=A#b"}"#, r#"{"download_url":"https://raw.test/f"}"#),
        (r#"{"download_url":"https://raw.test/\u003F\u003f?"}"#, r#"{"download_url":"https://raw.test/"}"#),
        (r#"{"download_url":"?\"x\\","a":"b?c"}"#, r#"{"download_url":"","a":"b?c"}"#),
        (r#"{"download\u005Furl":"f\\?token"}"#, r#"{"download\u005Furl":"f\\"}"#),
        (
            r#"{"download_url":["a?b",{"c":"d?e","f":[null,"g"]}],"h":"i?"}"#,
            r#"{"download_url":["a",{"c":"d","f":[null,"g"]}],"h":"i?"}"#,
        ),
        (
            r#"{"download_url":{"temp_clone_token":"a","b":"c?d"}}"#,
            r#"{"download_url":{"temp_clone_token":"","b":"c"}}"#,
        ),
        (r#"{"download_url":null,"a":"b?"}"#, r#"{"download_url":null,"a":"b?"}"#),
        (r#"{"a":"download_url","b":"c?d"}"#, r#"{"a":"download_url","b":"c?d"}"#),
        (
            r#"{"browser_download_url":"a?b","download_url?":"a?b"}"#,
            r#"{"browser_download_url":"a?b","download_url?":"a?b"}"#,
        ),
    ];
    check(&linked(GITHUB), &cases);
    check(&Changes::default(), &cases);
    check(
        &linked(GITHUB),
        &[
            (
                r#"{"download_url":"https://api.github.com/f?token=A"}"#,
                r#"{"download_url":"https://git.door.test/api/v3/f"}"#,
            ),
            (
                r#"{"download_url":"https://api.github.com\u003ftoken=A"}"#,
                r#"{"download_url":"https://git.door.test/api/v3"}"#,
            ),
        ],
    );
}

#[test]
fn a_root_object_without_a_version_is_given_one() {
    let changes = Changes { links: Some(links(GITHUB)), version: Some("99.0.0") };
    check(
        &changes,
        &[
            ("{}", r#"{"installed_version":"99.0.0"}"#),
            (" { } \n", " { \"installed_version\":\"99.0.0\"} \n"),
            (r#"{"a":{}}"#, r#"{"a":{},"installed_version":"99.0.0"}"#),
            ("{\n  \"a\": [1]\n}\n", "{\n  \"a\": [1]\n,\"installed_version\":\"99.0.0\"}\n"),
            (
                r#"{"a":{"installed_version":"1"}}"#,
                r#"{"a":{"installed_version":"1"},"installed_version":"99.0.0"}"#,
            ),
            (r#"{"a":"installed_version"}"#, r#"{"a":"installed_version","installed_version":"99.0.0"}"#),
            (r#"{"installed_versions":"1"}"#, r#"{"installed_versions":"1","installed_version":"99.0.0"}"#),
            (
                r#"{"a":"https://api.github.com"}"#,
                r#"{"a":"https://git.door.test/api/v3","installed_version":"99.0.0"}"#,
            ),
        ],
    );
}

#[test]
fn any_other_root_is_given_no_version() {
    let changes = Changes { links: None, version: Some("99.0.0") };
    for text in [
        r#"{"installed_version":"3.20.0"}"#,
        r#"{"a":1,"installed\u005fversion":null,"b":2}"#,
        r#"[{"a":1}]"#,
        "[]",
        r#""x""#,
        "1",
        "",
        r#"{"a":1"#,
    ] {
        assert_eq!(rewrite(&changes, text), text);
    }
    assert_eq!(rewrite(&Changes::default(), "{}"), "{}");
}

#[test]
fn what_nests_deeper_than_any_answer_is_cut() {
    let nested = |levels| {
        let pairs = [r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2)].concat();
        if levels % 2 == 0 { pairs } else { format!("[{pairs}]") }
    };
    let passes = nested(LEVELS);
    assert_eq!(rewrite_chunks(&linked(GITHUB), [passes.as_bytes()]).as_deref(), Ok(passes.as_bytes()));
    for text in [nested(LEVELS + 1), "[".repeat(100_000)] {
        for size in [1, 7, 1 << 20] {
            let mut rewriter = Rewriter::new(Changes::default());
            assert!(text.as_bytes().chunks(size).any(|chunk| rewriter.push(chunk).is_err()));
            assert_eq!(rewriter.push(b"x"), Err(TooDeep));
            assert_eq!(rewriter.finish(), Err(TooDeep));
        }
    }
    let wide = "[[]]".repeat(100_000);
    assert_eq!(rewrite_chunks(&Changes::default(), [wide.as_bytes()]).as_deref(), Ok(wide.as_bytes()));
}

#[test]
fn a_body_that_breaks_off_comes_out_as_far_as_it_came_and_without_its_token() {
    check(
        &linked(GITHUB),
        &[
            (r#"{"temp_clone_token":"ghs_x\u00"#, r#"{"temp_clone_token":""#),
            (r#"{"download_url":"f?token\"#, r#"{"download_url":"f"#),
            (r#"{"temp_clone"#, r#"{"temp_clone"#),
            (r#"["https:\/\/api.git\u00"#, r#"["https:\/\/api.git\u00"#),
            (r#"["https://api.github.com"#, r#"["https://api.github.com"#),
            (r#"["a\"#, r#"["a\"#),
        ],
    );
}

#[test]
fn a_broken_escape_or_a_second_root_hides_no_token() {
    let changes = Changes { links: None, version: Some("99.0.0") };
    check(
        &changes,
        &[
            (r#"["\u12",{"temp_clone_token":"x"}]"#, r#"["\u12",{"temp_clone_token":""}]"#),
            (r#"["\u","\q",{"temp_clone_token":"\u00\"x\u"}]"#, r#"["\u","\q",{"temp_clone_token":""}]"#),
            (
                "{\"temp_clone_token\":\"x\"}\n{\"a\":\"y\",\"temp_clone_token\":\"z\"}\n",
                "{\"temp_clone_token\":\"\",\"installed_version\":\"99.0.0\"}\n{\"a\":\"y\",\"temp_clone_token\":\"\"}\n",
            ),
        ],
    );
}

#[test]
fn what_is_no_json_passes() {
    for text in [
        "<html>\"https://x\"</html>",
        "\u{feff}[1]",
        "}{][",
        r#"{"a" "b"}{1:2}["c":"d"]"#,
        r#""\u12"\u00zz"\x""#,
        "'temp_clone_token'",
    ] {
        assert_eq!(rewrite(&linked(GITHUB), text), text);
    }
    let binary: Vec<u8> = [b"[\"\xff\xc0\x80\x00", &(0..=255).collect::<Vec<u8>>()[..]].concat();
    assert_eq!(rewrite_chunks(&linked(GITHUB), binary.chunks(3)), Ok(binary.clone()));
}
