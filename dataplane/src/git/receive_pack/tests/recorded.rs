//! Requests recorded from six implementations of git.

use super::*;
use base64::Engine as _;
use serde::Deserialize;
use std::io::Read as _;

const RECORDED: &str = include_str!("../../../../../tests/wire/receive_pack_requests.json");

#[derive(Deserialize)]
struct Request {
    name: String,
    plain_prefix_b64: String,
    gzip_body_b64: Option<String>,
    expect: Expected,
}

#[derive(Deserialize)]
struct Expected {
    shallow: Vec<String>,
    push_cert: bool,
    commands: Vec<[String; 3]>,
    capabilities: Vec<String>,
    push_options: Option<Vec<String>>,
    pack_offset: usize,
    pack_magic: String,
}

fn decode(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn body(request: &Request) -> Vec<u8> {
    let Some(coded) = &request.gzip_body_b64 else {
        return decode(&request.plain_prefix_b64);
    };
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&decode(coded)[..]).read_to_end(&mut body).unwrap();
    assert!(body.starts_with(&decode(&request.plain_prefix_b64)));
    body
}

#[test]
fn every_recorded_request_is_read_as_its_client_meant_it() {
    let requests: Vec<Request> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(requests.len(), 31);
    for request in requests {
        let (name, expect) = (&request.name, &request.expect);
        let body = body(&request);
        let section = match (read(&body), expect.push_cert, &expect.push_options) {
            (answer, true, _) => {
                assert_eq!(answer, Err(Malformed::PushCertificate), "{name}");
                continue;
            }
            (answer, false, Some(_)) => {
                assert_eq!(answer, Err(Malformed::PushOptions), "{name}");
                continue;
            }
            (answer, false, None) => answer.unwrap_or_else(|malformed| panic!("{name}: {malformed}")),
        };
        let commands: Vec<[String; 3]> = section.commands.iter().map(words).collect();
        assert_eq!(commands, expect.commands, "{name}");
        assert_eq!(section.shallow, expect.shallow.len(), "{name}");
        assert_eq!(section.length, expect.pack_offset, "{name}");
        assert_capabilities(&section.capabilities, &expect.capabilities, name);
        assert_eq!(section.deletes_only(), expect.pack_magic.is_empty(), "{name}");

        let mut pack = PackStart::after(&section);
        assert_eq!(pack.push(&body[section.length..]), Ok(()), "{name}");
        assert_eq!(pack.finish(), Ok(()), "{name}");
        assert_eq!(read_chunks(body.chunks(1)).0, Ok(section), "{name}");
    }
}

fn words(command: &Command) -> [String; 3] {
    let name = String::from_utf8(command.ref_name.to_vec()).unwrap();
    [command.old.as_str().to_owned(), command.new.as_str().to_owned(), name]
}

fn assert_capabilities(read: &Capabilities, expected: &[String], name: &str) {
    let has = |word: &str| expected.iter().any(|expected| expected == word);
    let report = match (has("report-status-v2"), has("report-status")) {
        (true, _) => Report::V2,
        (false, true) => Report::V1,
        (false, false) => Report::None,
    };
    assert_eq!(read.report, report, "{name}");
    assert_eq!(read.side_band_64k, has("side-band-64k"), "{name}");
    assert_eq!(read.atomic, has("atomic"), "{name}");
    assert_eq!(read.quiet, has("quiet"), "{name}");
    assert_eq!(read.object_format == Some(ObjectFormat::Sha256), has("object-format=sha256"), "{name}");
    let agent = expected.iter().find_map(|word| word.strip_prefix("agent="));
    assert_eq!(read.agent.as_deref(), agent, "{name}");
}
