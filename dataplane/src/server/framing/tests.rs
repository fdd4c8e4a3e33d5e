//! The table of heads and bodies, any chunking, and agreement with the server's own parser.

use super::*;
use std::convert::Infallible;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn scan<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut scanner = Scanner::default();
    let mut all = Vec::new();
    for mut rest in chunks {
        while let Some(seen) = scanner.next(&mut rest) {
            all.push(seen);
            if seen == Seen::Broken {
                return all;
            }
        }
    }
    all
}

/// What is seen of these bytes, however they are cut.
#[track_caller]
fn seen(bytes: &[u8]) -> Vec<Seen> {
    let whole = scan([bytes]);
    assert_eq!(scan(bytes.chunks(1)), whole, "byte by byte: {:?}", bytes.escape_ascii().to_string());
    for at in 0..=bytes.len() {
        let (front, back) = bytes.split_at(at);
        assert_eq!(scan([front, back]), whole, "split at {at}: {:?}", bytes.escape_ascii().to_string());
    }
    whole
}

const NEXT: &str = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n";

/// What is seen of a request with these lines, and of a plain one behind it.
#[track_caller]
fn post(lines: &str, body: &str) -> Vec<Seen> {
    seen(format!("POST /a HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n{body}{NEXT}").as_bytes())
}

fn good(framing: Framing) -> Vec<Seen> {
    vec![Seen::Head(Ok(framing)), Seen::Head(Ok(Framing::Empty))]
}

fn bad(bad: BadFraming) -> Vec<Seen> {
    vec![Seen::Head(Err(bad))]
}

#[test]
fn a_plain_framing_leads_to_the_next_head() {
    assert_eq!(post("X: y", ""), good(Framing::Empty));
    assert_eq!(post("Content-Length: 0", ""), good(Framing::Length(0)));
    assert_eq!(post("content-length:\t 05 \t", "hello"), good(Framing::Length(5)));
    assert_eq!(post("Content-Length: 4", "\r\n\r\n"), good(Framing::Length(4)));
    assert_eq!(post("Transfer-Encoding: Chunked", "0\r\n\r\n"), good(Framing::Chunked));
    assert_eq!(post("X: caf\u{e9}\tz\r\nY:\r\nZ: a:b", ""), good(Framing::Empty));
    let chunks = "A \t;name=\"v\"\r\n0123456789\r\n00e\r\n\r\nGET / HTTP/1\r\n0;last\r\nX: y\r\nEmpty:\r\n\r\n";
    assert_eq!(post("Transfer-Encoding: chunked", chunks), good(Framing::Chunked));
    assert_eq!(seen(format!("\r\n\r\n{NEXT}\r\n{NEXT}").as_bytes()), good(Framing::Empty));
    assert_eq!(seen(b"GET / HTTP/1.0\r\n\r\n"), [Seen::Head(Ok(Framing::Empty))]);
}

#[test]
fn two_lengths_are_refused_even_where_they_are_equal() {
    for lines in ["Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5\r\nX: y\r\ncontent-length: 6"] {
        assert_eq!(post(lines, "hello"), bad(BadFraming::Length), "{lines:?}");
    }
    for length in ["5, 5", "+5", "-5", "", "0x5", "5 5", "5.0", "18446744073709551616", "\u{665}"] {
        assert_eq!(post(&format!("Content-Length: {length}"), "hello"), bad(BadFraming::Length), "{length:?}");
    }
}

#[test]
fn a_length_beside_a_coding_is_refused_in_any_order() {
    let length = "Content-Length: 5";
    let coding = "Transfer-Encoding: chunked";
    for lines in [
        format!("{length}\r\n{coding}"),
        format!("{coding}\r\n{length}"),
        format!("{coding}\r\nContent-Length: +4, 9"),
        format!("{coding}\r\n{coding}"),
        format!("{coding}\r\nTransfer-Encoding: identity"),
    ] {
        assert_eq!(post(&lines, "0\r\n\r\n"), bad(BadFraming::Coding), "{lines:?}");
    }
    for coding in
        ["gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked", "chunked;q=1", "", "\"chunked\""]
    {
        let lines = format!("Transfer-Encoding: {coding}");
        assert_eq!(post(&lines, "0\r\n\r\n"), bad(BadFraming::Coding), "{coding:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(seen(old.as_bytes()), bad(BadFraming::Coding));
}

#[test]
fn a_line_that_readers_end_or_split_differently_is_refused() {
    for lines in [
        "X: y\nZ: w",
        "X: y\n",
        "X: y\rZ: w",
        "X: y\r\r",
        "X: y\r\n folded",
        "X: y\r\n\tfolded",
        "Content-Length : 5",
        "Content-Length\t: 5",
        " Content-Length: 5",
        ": y",
        "no colon",
        "X\0: y",
        "X: \0",
        "X: \u{7f}",
        "X: \u{b}",
        "X(y): z",
    ] {
        assert_eq!(post(lines, ""), bad(BadFraming::Line), "{lines:?}");
    }
    for line in [
        "GET / HTTP/1.1\n",
        "\nGET / HTTP/1.1\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET / HTTP/1.1 \r\n",
        " GET / HTTP/1.1\r\n",
        "GET\t/ HTTP/1.1\r\n",
        "GET /\r\n",
        "GET / HTTP/1.2\r\n",
        "GET / http/1.1\r\n",
        "GET / HTTP/1.1 HTTP/1.1\r\n",
        "GET /a\tb HTTP/1.1\r\n",
        "G(T / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\r\n",
        "GET / HTTP/1.1\r\n Host: h\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        assert_eq!(seen(format!("{line}Host: h\r\n\r\n{NEXT}").as_bytes()), bad(BadFraming::Line), "{line:?}");
    }
}

#[test]
fn a_head_is_bounded() {
    let head = |padding: usize| format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(padding));
    let most = crate::upstream::BUFFER - head(0).len();
    assert_eq!(scan([head(most).as_bytes()]), [Seen::Head(Ok(Framing::Empty))]);
    assert_eq!(scan([head(most + 1).as_bytes()]), bad(BadFraming::Line));
    assert_eq!(scan(vec![&b"y"[..]; 100_000]), bad(BadFraming::Line));
    assert_eq!(scan(vec![&b"\r\n"[..]; 100_000]), bad(BadFraming::Line));
}

#[test]
fn a_body_whose_chunks_readers_could_take_differently_is_broken() {
    let long = format!("1;{}\r\nx\r\n0\r\n\r\n", "y".repeat(20_000));
    let trailers = format!("0\r\n{}\r\n", "X: y\r\n".repeat(4_000));
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhelloo\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\x0c;x\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-1\r\n",
        "\r\n",
        ";x\r\n",
        "5;x\0\r\nhello\r\n0\r\n\r\n",
        "5;x\n\r\nhello\r\n0\r\n\r\n",
        "5;x\ry\r\nhello\r\n0\r\n\r\n",
        "10000000000000000\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n\n\r\n",
        "0\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n folded\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let expected = [Seen::Head(Ok(Framing::Chunked)), Seen::Broken];
        assert_eq!(post("Transfer-Encoding: chunked", body), expected, "{body:?}");
    }
    for body in [long, trailers] {
        let bytes = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(scan([bytes.as_bytes()]), [Seen::Head(Ok(Framing::Chunked)), Seen::Broken]);
    }
}

#[test]
fn the_largest_length_is_passed_over_by_arithmetic() {
    let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    let zeros = vec![0; 1 << 20];
    let chunks = std::iter::once(head.as_bytes()).chain(std::iter::repeat_n(&zeros[..], 1 << 14));
    assert_eq!(scan(chunks), [Seen::Head(Ok(Framing::Length(u64::MAX)))]);
}

fn request(headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().uri("/a");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

#[test]
fn a_request_that_was_seen_otherwise_or_not_at_all_is_refused() {
    let heads = Heads::default();
    let length = ("content-length", "5");
    let coding = ("transfer-encoding", "chunked");
    assert_eq!(heads.judge(&request(&[])), Err(BadFraming::Step));
    for (framing, headers, judged) in [
        (Framing::Empty, &[][..], Ok(())),
        (Framing::Length(5), &[length], Ok(())),
        (Framing::Chunked, &[coding], Ok(())),
        (Framing::Empty, &[length], Err(BadFraming::Step)),
        (Framing::Empty, &[coding], Err(BadFraming::Step)),
        (Framing::Length(6), &[length], Err(BadFraming::Step)),
        (Framing::Length(5), &[], Err(BadFraming::Step)),
        (Framing::Length(5), &[length, length], Err(BadFraming::Step)),
        (Framing::Length(5), &[length, coding], Err(BadFraming::Step)),
        (Framing::Chunked, &[length], Err(BadFraming::Step)),
        (Framing::Chunked, &[], Err(BadFraming::Step)),
    ] {
        heads.push(Ok(framing));
        assert_eq!(heads.judge(&request(headers)), judged, "{framing:?} {headers:?}");
    }
    let mut other = request(&[length, length]);
    *other.version_mut() = Version::HTTP_2;
    assert_eq!(heads.judge(&other), Ok(()));
}

/// A well-formed request, and its framing.
fn well_formed() -> impl Strategy<Value = (Vec<u8>, Framing)> {
    let data = || vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), any::<u8>()], 0..60);
    let extension = prop_oneof![Just(""), Just(";a"), Just(" \t;a=b; c=\"d e\"")];
    let chunk = (data(), extension, any::<bool>());
    let trailers = vec(prop_oneof![Just("X: y\r\n"), Just("Empty:\r\n"), Just("A-b:\t c \r\n")], 0..3);
    let head = "POST /a HTTP/1.1\r\nHost: h\r\n";
    let length = data().prop_map(move |data| {
        let framing = Framing::Length(data.len() as u64);
        ([format!("{head}Content-Length: {}\r\n\r\n", data.len()).as_bytes(), &data].concat(), framing)
    });
    let chunked = (vec(chunk, 0..5), trailers).prop_map(move |(chunks, trailers)| {
        let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for (data, extension, padded) in chunks.iter().filter(|(data, ..)| !data.is_empty()) {
            let size = if *padded { format!("{:04X}", data.len()) } else { format!("{:x}", data.len()) };
            bytes.extend([format!("{size}{extension}\r\n").as_bytes(), data, b"\r\n"].concat());
        }
        bytes.extend(format!("0\r\n{}\r\n", trailers.concat()).into_bytes());
        (bytes, Framing::Chunked)
    });
    prop_oneof![Just((NEXT.as_bytes().to_vec(), Framing::Empty)), length, chunked]
}

fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// What the server let in of these bytes, each with its judgement, as far as it read them.
async fn serve(pieces: Vec<Vec<u8>>) -> Vec<Result<(), BadFraming>> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let (stream, heads) = Scanned::new(server);
    let judged = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&judged);
    let service = service_fn(move |request: Request<Incoming>| {
        all.lock().unwrap().push(heads.judge(&request));
        async move {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.frame().await {}
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let server = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let client = async {
        for piece in pieces {
            if client.write_all(&piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _may_be_closed = client.shutdown().await;
        let _may_be_closed = client.read_to_end(&mut Vec::new()).await;
    };
    let (_ended_or_refused, ()) = tokio::join!(server, client);
    let judged = judged.lock().unwrap();
    judged.clone()
}

fn served(pieces: Vec<Vec<u8>>) -> Vec<Result<(), BadFraming>> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(serve(pieces))
}

proptest! {
    #[test]
    fn every_head_of_a_well_formed_sequence_is_seen_and_nothing_else(
        requests in vec(well_formed(), 1..8),
        sizes in vec(1_usize..80, 1..8),
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Seen> = requests.iter().map(|(_, framing)| Seen::Head(Ok(*framing))).collect();
        prop_assert_eq!(scan([&bytes[..]]), &expected[..]);
        prop_assert_eq!(scan(cut(&bytes, &sizes).iter().map(Vec::as_slice)), &expected[..]);
        prop_assert_eq!(served(cut(&bytes, &sizes)), vec![Ok(()); requests.len()]);
    }

    /// Each request that the server takes out of broken bytes was seen as the same, until one is refused; what is
    /// behind a refused one is never good again.
    #[test]
    fn the_two_readers_never_part_unnoticed(
        requests in vec(well_formed(), 1..5),
        spoils in vec((any::<prop::sample::Index>(), spoil()), 1..4),
        sizes in vec(1_usize..80, 1..8),
    ) {
        let mut bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        for (at, (removed, added)) in spoils {
            let at = at.index(bytes.len());
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, added.iter().copied());
            prop_assume!(!bytes.is_empty());
        }
        let judged = served(cut(&bytes, &sizes));
        let good = judged.iter().take_while(|judged| judged.is_ok()).count();
        prop_assert!(judged.iter().skip(good).all(Result::is_err), "{:?}", judged);
        // A lost step would mean that a request before it was let in with another body than was seen.
        prop_assert!(judged.get(good) != Some(&Err(BadFraming::Step)), "{:?} {:?}", judged, bytes.escape_ascii().to_string());
    }

    #[test]
    fn any_bytes_are_judged_alike_at_any_chunking(
        bytes in vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), Just(b' '), any::<u8>()], 0..200),
        sizes in vec(1_usize..20, 1..8),
    ) {
        prop_assert_eq!(scan(cut(&bytes, &sizes).iter().map(Vec::as_slice)), scan([&bytes[..]]));
    }
}

/// How many bytes are taken out, and what is put there instead.
fn spoil() -> impl Strategy<Value = (usize, &'static [u8])> {
    let texts: [&'static [u8]; 16] = [
        b"",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b"\0",
        b";",
        b":",
        b"0",
        b"1",
        b"\r\nContent-Length: 3",
        b"\r\nTransfer-Encoding: chunked",
        b"0\r\n\r\n",
    ];
    (0_usize..3, prop::sample::select(texts.to_vec()))
}
