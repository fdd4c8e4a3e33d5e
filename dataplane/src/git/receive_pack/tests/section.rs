//! The rules of the section, one by one, and any chunking.

use super::*;

const B: &str = "e41ac498f381c4f4919ab2fb169b3655a512fa43";
const ZERO_64: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const C_64: &str = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

fn refused(lines: &[impl AsRef<[u8]>]) -> Malformed {
    read(&section(lines)).unwrap_err()
}

#[test]
fn commands_and_capabilities_are_read_as_they_came() {
    let body = section(&[
        format!(
            "{ZERO} {A} refs/heads/x\0 report-status-v2 side-band-64k quiet atomic object-format=sha1 agent=git/2.47.3"
        ),
        format!("{A} {B} refs/heads/y"),
    ]);
    let section = read(&body).unwrap();
    assert_eq!(refs(&section), [b"refs/heads/x", b"refs/heads/y"]);
    assert_eq!(section.commands[0].old.as_str(), ZERO);
    assert_eq!(section.commands[1].new.as_str(), B);
    assert_eq!(section.length, body.len());
    assert_eq!(
        section.capabilities,
        Capabilities {
            report: Report::V2,
            side_band_64k: true,
            atomic: true,
            quiet: true,
            object_format: Some(ObjectFormat::Sha1),
            agent: Some("git/2.47.3".to_owned()),
        }
    );
}

#[test]
fn the_byte_after_nul_and_a_final_lf_do_not_matter() {
    for capabilities in ["report-status", " report-status", " report-status\n", "report-status \n"] {
        let section = read(&section(&[format!("{ZERO} {A} refs/heads/x\0{capabilities}")])).unwrap();
        assert_eq!(section.capabilities.report, Report::V1, "{capabilities:?}");
    }
    let section = read(&section(&[format!("{ZERO} {A} refs/heads/x\n")])).unwrap();
    assert_eq!(refs(&section), [b"refs/heads/x"]);
    assert_eq!(section.capabilities, Capabilities::default());
}

#[test]
fn a_word_with_a_value_counts_and_a_longer_word_does_not() {
    let capabilities = |words: &str| read(&section(&[format!("{ZERO} {A} r\0{words}")])).unwrap().capabilities;
    assert_eq!(capabilities("report-status=no").report, Report::V1);
    assert_eq!(capabilities("report-status report-status-v2").report, Report::V2);
    assert_eq!(capabilities("report-status-v2 report-status").report, Report::V2);
    assert_eq!(capabilities("xreport-status report-status-v3 side-band"), Capabilities::default());
    assert_eq!(capabilities("side-band-64k").report, Report::None);
}

#[test]
fn the_agent_is_bounded() {
    let section = read(&section(&[format!("{ZERO} {A} r\0agent={}", "x".repeat(500))])).unwrap();
    assert_eq!(section.capabilities.agent, Some("x".repeat(128)));
}

#[test]
fn shallow_lines_come_before_the_commands_and_are_counted() {
    let lines = [format!("shallow {A}\n"), format!("shallow {B}"), format!("{ZERO} {A} refs/heads/x\0")];
    let read_back = read(&section(&lines)).unwrap();
    assert_eq!((read_back.shallow, read_back.commands.len()), (2, 1));
    assert_eq!(refused(&[format!("{ZERO} {A} refs/heads/x\0"), format!("shallow {A}")]), Malformed::LateShallow);
    assert_eq!(refused(&[format!("shallow {A}x")]), Malformed::ObjectId);
    assert_eq!(refused(&[format!("shallow {A}\0report-status")]), Malformed::ObjectId);
    assert_eq!(refused(&["shallow "]), Malformed::ObjectId);
    assert_eq!(refused(&["shallow"]), Malformed::Command);
}

#[test]
fn a_bare_flush_and_shallow_lines_alone_are_a_probe() {
    let probe = read(b"0000").unwrap();
    assert!(probe.is_probe() && !probe.deletes_only());
    assert_eq!(probe.length, 4);
    assert!(read(&section(&[format!("shallow {A}\n")])).unwrap().is_probe());
}

#[test]
fn a_zero_new_id_deletes_even_from_zero() {
    for line in [format!("{A} {ZERO} refs/heads/x"), format!("{ZERO} {ZERO} refs/heads/x")] {
        let section = read(&section(&[line])).unwrap();
        assert!(section.commands[0].is_delete() && section.deletes_only());
    }
    let mixed = [format!("{A} {ZERO} refs/heads/x"), format!("{ZERO} {A} refs/heads/y")];
    assert!(!read(&section(&mixed)).unwrap().deletes_only());
}

#[test]
fn sha256_ids_need_the_object_format_and_no_other_width() {
    let sha256 = "\0report-status object-format=sha256";
    let delete = read(&section(&[format!("{C_64} {ZERO_64} refs/heads/x{sha256}")])).unwrap();
    assert!(delete.deletes_only());
    assert_eq!(refused(&[format!("{ZERO_64} {C_64} refs/heads/x\0report-status")]), Malformed::IdWidth);
    assert_eq!(refused(&[format!("{ZERO} {A} refs/heads/x{sha256}")]), Malformed::IdWidth);
    assert_eq!(refused(&[format!("{ZERO} {C_64} refs/heads/x{sha256}")]), Malformed::IdWidth);
    assert_eq!(refused(&[format!("shallow {A}"), format!("{ZERO_64} {C_64} r{sha256}")]), Malformed::IdWidth);
    assert_eq!(refused(&[format!("{ZERO} {A} r\0"), format!("{ZERO_64} {C_64} r")]), Malformed::IdWidth);
    assert_eq!(refused(&[format!("shallow {A}"), format!("shallow {C_64}")]), Malformed::IdWidth);
}

#[test]
fn an_object_format_is_named_once_and_known() {
    for words in [
        "object-format",
        "object-format=",
        "object-format=md5",
        "object-format=SHA1",
        "object-format=sha1 object-format=sha1",
    ] {
        assert_eq!(refused(&[format!("{ZERO} {A} r\0{words}")]), Malformed::ObjectFormat, "{words}");
    }
}

#[test]
fn ids_of_either_case_are_one_id_and_go_up_as_they_came() {
    let body = section(&[format!("{ZERO} {} refs/heads/x", A.to_uppercase())]);
    let (section, held) = read_chunks([&body[..]]);
    assert_eq!(section.unwrap().commands[0].new.as_str(), A);
    assert_eq!(held, body);
}

#[test]
fn a_line_that_is_no_command_is_refused() {
    for line in ["", "\n", "x", "ERR no", A, &format!("{A} {A}")] {
        assert_eq!(refused(&[line]), Malformed::Command, "{line:?}");
    }
    for line in [
        format!("{A}  {A} r"),
        format!(" {A} {A} r"),
        format!("{} {A} r", A.replace('9', "g")),
        format!("{A}0 {A} r"),
        format!("{A}\t{A} r r"),
    ] {
        assert_eq!(refused(&[line]), Malformed::ObjectId);
    }
}

#[test]
fn a_refs_name_is_every_byte_to_the_end() {
    let named = |name: &[u8]| read(&section(&[[format!("{ZERO} {A} ").as_bytes(), name].concat()]));
    for name in [&b"refs/heads/a b"[..], b" x", b"x ", b"x\r", b"refs/heads/\xc0", b"refs/heads/JDK-PACK", b"HEAD"]
    {
        assert_eq!(refs(&named(name).unwrap()), [name]);
    }
    assert_eq!(named(b"").unwrap_err(), Malformed::EmptyRef);
    assert_eq!(named(b"\0report-status").unwrap_err(), Malformed::EmptyRef);
    assert_eq!(named(b"a\n\n").unwrap_err(), Malformed::RefLineFeed);
    assert_eq!(named(b"a\nb").unwrap_err(), Malformed::RefLineFeed);
    assert_eq!(named(b"a\n\0report-status").unwrap_err(), Malformed::RefLineFeed);
}

#[test]
fn a_second_set_of_capabilities_is_refused() {
    let first = format!("{ZERO} {A} refs/heads/x\0report-status");
    assert_eq!(refused(&[&*first, &format!("{ZERO} {A} refs/heads/y\0")]), Malformed::LateCapabilities);
    assert_eq!(refused(&[format!("{first}\0atomic")]), Malformed::CapabilityBytes);
}

#[test]
fn a_capability_that_two_servers_could_split_differently_is_refused() {
    for words in ["a\tpush-options", "a\npush-options", "a\rb", "a\x0bb", "a\u{a0}b", "\u{1b}", "\n\n"] {
        assert_eq!(refused(&[format!("{ZERO} {A} r\0{words}")]), Malformed::CapabilityBytes, "{words:?}");
    }
}

#[test]
fn push_options_and_push_certificates_are_refused_by_name() {
    for words in ["push-options", "report-status push-options\n", "push-options=1"] {
        assert_eq!(refused(&[format!("{ZERO} {A} r\0{words}")]), Malformed::PushOptions);
    }
    for line in ["push-cert", "push-cert\n", "push-cert\0 report-status\n", &format!("{ZERO} {A} r\0push-cert=x")] {
        assert_eq!(refused(&[line]), Malformed::PushCertificate, "{line:?}");
    }
    assert_eq!(refused(&[&*format!("{ZERO} {A} r\0"), "push-cert\n"]), Malformed::PushCertificate);
}

#[test]
fn a_body_that_ends_before_the_flush_is_truncated() {
    let body = section(&[format!("shallow {A}"), format!("{ZERO} {A} r\0")]);
    assert_eq!(read(b""), Err(Malformed::Empty));
    for end in 1..body.len() {
        assert_eq!(read(&body[..end]), Err(Malformed::Truncated), "{end}");
    }
}

#[test]
fn the_packets_that_end_a_section_for_git_besides_a_flush_are_refused() {
    let command = section(&[format!("{ZERO} {A} refs/heads/x\0")]);
    for end in ["0001", "0002", "0003"] {
        let body = [&command[..command.len() - 4], end.as_bytes()].concat();
        assert_eq!(read(&body), Err(Malformed::PktLine(InvalidLength::Reserved)));
    }
    assert_eq!(read(b"PACK"), Err(Malformed::PktLine(InvalidLength::Digits)));
}

#[test]
fn a_section_of_64_kib_is_read_and_one_byte_more_is_refused_before_it_is_sent() {
    let line = |length: usize| format!("{ZERO} {A} {}", "x".repeat(length - 4 - 82));
    let most = section(&[line(60_000), line(SECTION_BYTES - 60_000 - 4)]);
    assert_eq!(most.len(), SECTION_BYTES);
    assert_eq!(read(&most).unwrap().length, SECTION_BYTES);

    let above = section(&[line(60_000), line(SECTION_BYTES - 60_000 - 3)]);
    assert_eq!(read(&above), Err(Malformed::TooLong));
    let far_above = section(&[line(60_000), line(SECTION_BYTES - 60_000 + 1)]);
    let announced = 60_000 + 4;
    assert_eq!(read(&far_above[..announced]), Err(Malformed::TooLong));
    assert_eq!(read(&most[..announced]), Err(Malformed::Truncated));
}

#[test]
fn everything_that_was_pushed_goes_up_unchanged() {
    let body = [&section(&[format!("{ZERO} {A} r\0")])[..], b"PACK and so on"].concat();
    let mut reader = SectionReader::new();
    assert_eq!(reader.push(&body[..50]), Ok(None));
    let section = reader.push(&body[50..]).unwrap().unwrap();
    assert_eq!(&body[section.length..], b"PACK and so on");
    assert_eq!(reader.into_bytes(), body);
}

#[test]
fn a_pack_follows_when_a_command_needs_one_else_nothing() {
    let after = |lines: &[String], chunks: &[&[u8]]| {
        let mut pack = PackStart::after(&read(&section(lines)).unwrap());
        chunks.iter().try_for_each(|chunk| pack.push(chunk))?;
        pack.finish()
    };
    let update = [format!("{A} {ZERO} refs/heads/x"), format!("{ZERO} {A} refs/heads/y")];
    let delete = [format!("{A} {ZERO} refs/heads/x")];
    for chunks in [&[&b"PACK"[..]][..], &[b"PACK\0\0", b"x"], &[b"P", b"", b"AC", b"K"], &[b"PAC", b"K\0"]] {
        assert_eq!(after(&update, chunks), Ok(()));
    }
    assert_eq!(after(&update, &[]), Err(Malformed::PackMissing));
    assert_eq!(after(&update, &[b"PAC"]), Err(Malformed::PackMissing));
    for chunks in [&[&b"0000PACK"[..]][..], &[b"P", b"ACk"], &[b"x"]] {
        assert_eq!(after(&update, chunks), Err(Malformed::NotAPack));
    }
    for lines in [&delete[..], &[]] {
        assert_eq!(after(lines, &[b""]), Ok(()));
        assert_eq!(after(lines, &[b"P"]), Err(Malformed::UnexpectedPack));
    }
}

#[test]
fn split_at_every_byte_the_answer_is_the_same() {
    let good =
        section(&[format!("shallow {A}\n"), format!("{ZERO} {A} r\0 report-status"), format!("{A} {B} s\n")]);
    let bad = section(&[format!("{ZERO} {A} r\0 report-status"), format!("{A} {B}")]);
    for body in [[&good[..], b"PACK"].concat(), bad] {
        let whole = read(&body);
        for at in 0..=body.len() {
            assert_eq!(read_chunks([&body[..at], &body[at..]]).0, whole);
        }
        assert_eq!(read_chunks(body.chunks(1)).0, whole);
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_answer(body in body(&[A, ZERO, C_64, ZERO_64]), sizes in prop::collection::vec(1..40_usize, 1..20)) {
        let mut rest = &body[..];
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            chunks.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let (answer, held) = read_chunks(chunks);
        prop_assert_eq!(&answer, &read(&body));
        prop_assert!(body.starts_with(&held));
        if let Ok(section) = answer {
            prop_assert!(body[..section.length].ends_with(pktline::FLUSH));
            prop_assert!(held.len() >= section.length);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&body);
    }
}
