//! Dialogues that change to TLS, and those that do not.

use crate::support::{C, S, Step, data, run};
use crate::tls::{client_hello, server_hello_record};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::{Carrier, Event, Session};

/// The protocols and the hellos of a dialogue, in order. It is run whole, in single bytes, and with each step cut in
/// two anywhere.
pub(crate) fn names(steps: &[(Side, Step)]) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::Identified(found) => found.protocol.name(),
        Event::ClientHello(_) => "hello",
        Event::ServerHello(_) => "answer",
        _ => "other",
    };
    let whole: Vec<_> = run(Carrier::Stream, steps).iter().map(name).collect();
    for piece in [2, 3, 7, 40] {
        let cut = crate::support::run_in_pieces(Carrier::Stream, steps, piece);
        assert_eq!(cut.iter().map(name).collect::<Vec<_>>(), whole, "in pieces of {piece}");
    }
    whole
}

/// A dialogue, C: and S: before each line, with the hellos behind it.
fn dialogue(lines: &[&str]) -> Vec<(Side, Step)> {
    let mut steps: Vec<_> = lines
        .iter()
        .map(|line| (if line.starts_with("C:") { C } else { S }, data(format!("{}\r\n", &line[2..]))))
        .collect();
    steps.push((C, data(client_hello())));
    steps.push((S, data(server_hello_record())));
    steps
}

#[test]
fn tls_begins_where_both_agree() {
    let smtp = ["S:220-mail.example", "S:220 ESMTP", "C:EHLO a", "S:250-mail.example", "S:250 STARTTLS"];
    let to_tls = |lines: &[&str], name: &str| {
        assert_eq!(names(&dialogue(lines)), [name, "tls", "hello", "answer"], "{lines:?}");
    };
    to_tls(&[&smtp[..], &["C:starttls", "S:220-go", "S:220 ahead"]].concat(), "smtp");
    to_tls(&["S:220 FTP", "C:AUTH SSL", "S:504 no", "C:AUTH TLS", "S:234-yes", "S: 234 not yet", "S:234 now"], "ftp");
    to_tls(&["S:+OK", "C:STLS", "S:+OK"], "pop3");
    to_tls(&["S:* OK x", "C:a1 CAPABILITY", "S:* CAPABILITY", "S:a1 OK", "C:a2 STARTTLS", "S:a2 OK"], "imap");
    // Commands may be sent before the answers to earlier ones, one of which may be a refusal.
    to_tls(&[&smtp[..], &["C:NOOP", "C:BAD", "C:STARTTLS", "S:250 ok", "S:500 what?", "S:220 go"]].concat(), "smtp");
    // The greeting was not captured.
    to_tls(&["C:EHLO a", "S:250 STARTTLS", "C:STARTTLS", "S:220 go"], "smtp");
    // The client's hello comes in front of the answer, as far as the capture shows.
    let mut early = dialogue(&[&smtp[..], &["C:STARTTLS", "S:220 go"]].concat());
    let at = early.len() - 3;
    early.swap(at, at + 1);
    assert_eq!(names(&early), ["smtp", "tls", "hello", "answer"]);
}

#[test]
fn nothing_else_is_taken_for_an_agreement() {
    let smtp = ["S:220 ESMTP", "C:EHLO a", "S:250 STARTTLS"];
    let stays = |lines: &[&str]| assert_eq!(names(&dialogue(&[&smtp, lines].concat())), ["smtp"], "{lines:?}");
    stays(&["C:STARTTLS", "S:454 not now"]);
    stays(&["C:STARTTLS", "S:250 ok"]);
    stays(&["C:STARTTLS now", "S:220 go"]);
    stays(&["S:220 go"]);
    // A mail's content.
    stays(&["C:DATA", "S:354 go", "C:Subject: x", "C:", "C:STARTTLS", "S:220 odd", "C:..", "C:."]);
    stays(&["C:BDAT 20 LAST", "C:STARTTLS", "C:STARTTLS", "S:220 odd"]);
    stays(&["C:RCPT TO:<a>", "C:DATA", "S:550 no", "S:354 go", "C:STARTTLS", "S:220 odd"]);
    // A line inside an answer.
    let features = ["S:220 FTP", "C:FEAT", "C:AUTH TLS", "S:211-what", "S:234 inside", "S:211 end", "S:500 no"];
    assert_eq!(names(&dialogue(&features)), ["ftp"]);
    assert_eq!(names(&dialogue(&["S:* OK x", "C:a STARTTLS", "S:b OK", "S:* OK"])), ["imap"]);
    // The mail is over, or was refused.
    let mail = ["C:DATA", "S:354 go", "C:STARTTLS", "C:.", "S:250 ok", "C:STARTTLS", "S:220 go"];
    assert_eq!(names(&dialogue(&[&smtp[..], &mail].concat())).len(), 4);
    let refused = ["C:DATA", "S:503 no", "C:STARTTLS", "S:220 go"];
    assert_eq!(names(&dialogue(&[&smtp[..], &refused].concat())).len(), 4);
}

#[test]
fn each_status_line_of_pop3_answers_one_command() {
    let pop3 = |lines: &[&str], follows: usize| {
        assert_eq!(names(&dialogue(&[&["S:+OK ready"], lines].concat())).len(), 1 + follows, "{lines:?}");
    };
    pop3(&["C:USER x\r\nSTLS", "S:+OK\r\n+OK go"], 3);
    pop3(&["C:USER x", "C:STLS", "S:-ERR", "S:+OK go"], 3);
    pop3(&["C:USER x", "C:STLS", "S:+OK", "S:-ERR", "C:NOOP", "S:+OK"], 0);
    pop3(&["C:STLS", "S:-ERR no", "C:USER x", "S:+OK"], 0);
    pop3(&["C:STLS", "S:-ERR no", "C:STLS", "S:+OK"], 3);
    pop3(&["C:STLS\r\nUSER x\r\nSTLS", "S:-ERR no", "S:+OK", "S:+OK"], 3);
    // Answers of several lines, and commands in several.
    pop3(&["C:CAPA\r\nSTLS", "S:+OK", "S:STLS", "S:+OK inside", "S:.", "S:+OK"], 3);
    pop3(&["C:CAPA\r\nSTLS", "S:+OK", "S:STLS", "S:+OK inside", "S:.", "S:-ERR"], 0);
    pop3(&["C:LIST 1\r\nSTLS", "S:+OK 1 1", "S:+OK"], 3);
    pop3(&["C:AUTH PLAIN", "S:+", "C:AGEAYg==", "S:-ERR", "C:STLS", "S:+OK"], 3);
    // So many that wait are not counted.
    pop3(&[&"C:NOOP\r\n".repeat(63), "C:STLS", &"S:+OK\r\n".repeat(64), "S:+OK"].map(|line| line), 0);
}

#[test]
fn answers_and_content_have_their_protocols_form() {
    let smtp = |lines: &[&str], follows: usize| {
        assert_eq!(names(&dialogue(&[&["S:220 ESMTP", "C:EHLO a"], lines].concat())).len(), 1 + follows, "{lines:?}");
    };
    // Any line with a code and a space ends an answer of SMTP.
    smtp(&["S:250-x", "S:251 y", "C:STARTTLS", "S:220 go"], 3);
    // What the server does not take is not sent.
    smtp(&["S:250 x", "C:BDAT 999999", "S:503 no", "C:STARTTLS", "S:220 go"], 3);
    smtp(&["S:250 x", "C:BDAT  40", "C:STARTTLS", "S:503 no", "C:STARTTLS", "S:220 go"], 0);
    // A command comes behind the refusal.
    smtp(&["S:250 x", "C:STARTTLS", "S:454 no", "C:NOOP", "S:220 odd"], 0);
    // The greeting comes late.
    let early = ["C:EHLO a\r\nSTARTTLS", "S:220 ESMTP", "S:250 x"];
    assert_eq!(names(&dialogue(&[&early[..], &["S:500 no"]].concat())).len(), 1);
    assert_eq!(names(&dialogue(&[&early[..], &["S:220 go"]].concat())).len(), 4);
    assert_eq!(names(&dialogue(&["S:220 FTP", "C:AUTH   TLS", "S:234 yes"])).len(), 4);

    let imap = |lines: &[&str], follows: usize| {
        assert_eq!(names(&dialogue(&[&["S:* OK x"], lines].concat())).len(), 1 + follows, "{lines:?}");
    };
    imap(&["C:a  STARTTLS", "S:a OK"], 3);
    // `z STARTTLS` is content, and the line goes on behind it.
    let append = ["C:a APPEND x {12}", "S:+ go", "C:z STARTTLS\r\n", "C:b STARTTLS"];
    imap(&[&append[..], &["S:z OK"]].concat(), 0);
    imap(&[&append[..], &["S:a OK", "S:b OK"]].concat(), 3);
    imap(&["C:a LOGIN {1+}\r\nb {10+}\r\nc STARTTLS", "S:c OK"], 0);
    imap(&["C:a APPEND x {99}", "S:a NO", "C:b STARTTLS", "S:b OK"], 3);
    imap(&["S:* 1 FETCH (BODY[] {6}", "S:a OK", "S:)", "C:a STARTTLS", "S:a OK"], 3);
    imap(&["C:a STARTTLS", "S:* 1 FETCH (BODY[] {6}", "S:a OK", "S:a OK)", "S:a NO"], 0);
    // An answer that never comes.
    imap(&["C:a STARTTLS", "C:b NOOP", "S:b OK", "C:c STARTTLS", "S:c OK"], 3);
    imap(&["C:a NOOP", "C:b STARTTLS", "S:a OK", "S:b OK"], 3);
    // A tag says which command is refused, and may be used again.
    imap(&["C:a STARTTLS", "S:a NO", "C:a NOOP", "S:a OK"], 0);
    imap(&["C:a STARTTLS", "C:b NOOP", "S:b OK", "S:a NO", "S:a OK"], 0);
    imap(&["C:a STARTTLS", "C:b NOOP", "S:b OK", "C:a NOOP", "S:a OK"], 0);
}

#[test]
fn held_commands_are_read_once_more() {
    let begin = [(S, data("220 ESMTP\r\n")), (C, data("EHLO a\r\n"))];
    let end = dialogue(&["C:STARTTLS", "S:220 go"]);
    // 1,600 commands wait, each refused, and one that is taken.
    let steps = [(C, data("STARTTLS\r\n".repeat(1600))), (S, data("500\n".repeat(1601)))];
    assert_eq!(names(&[&begin, &steps[..], &end].concat()).len(), 4);
    // They count once in what is watched.
    let again = [&steps[..], &steps, &steps, &[(C, data("x".repeat(12 << 10) + "\r\n"))]].concat();
    assert_eq!(names(&[&begin, &again[..], &end].concat()).len(), 4);
}

#[test]
fn a_dialogue_is_not_watched_for_ever() {
    let begin = [(S, data("220 ESMTP\r\n")), (C, data("EHLO a\r\n"))];
    let end = dialogue(&["C:STARTTLS", "S:220 go"]);
    let between = |steps: &[(Side, Step)]| names(&[&begin, steps, &end].concat()).len();
    assert_eq!(between(&[(C, data("NOOP\r\n".repeat(1000)))]), 4);
    assert_eq!(between(&[(C, data("NOOP\r\n".repeat(20_000)))]), 1);
    assert_eq!(between(&[(S, data("250-x\r\n".repeat(20_000)))]), 1);
    // The agreement lies just within what is watched, or reaches out of it.
    let until = |before: usize| (S, data("x".repeat(before - 13) + "\r\n"));
    assert_eq!(between(&[until((64 << 10) - 8)]), 4);
    assert_eq!(between(&[until((64 << 10) - 7)]), 1);
    assert_eq!(between(&[(C, data("x".repeat(9000) + "\r\n"))]), 4, "a long line is no command");
    assert_eq!(between(&[(S, Step::Gap(3))]), 1);
    let picked_up = [(S, data("?")), (S, Step::Gap(3))];
    assert_eq!(names(&[&picked_up, &begin[..], &end].concat()).len(), 4, "a gap before the first line");

    let mut session = Session::new(Carrier::Stream);
    let mut events = Vec::new();
    for (side, bytes) in [(S, "220 ESMTP\r\n".to_owned()), (C, "EHLO a\r\nSTARTTLS\r\n".to_owned())] {
        session.data(side, 0, bytes.as_bytes(), &mut events);
    }
    assert!(session.wants(C));
    session.data(C, 0, &[22; 20 << 10], &mut events);
    assert!(!session.wants(C) && !session.wants(S) && session.heap_bytes() == 0, "too much waits for the answer");
}
