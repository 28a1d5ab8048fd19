//! DNS: messages over UDP and TCP, pairs, cut and looping messages.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::support::{C, S, Step, data, run};
use corelane_net::conversation::Side;
use corelane_net::protocol::dns::{Data, Message, QUESTIONS, TEXT};
use corelane_net::protocol::{Carrier, Event, Text};

fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> =
        labels.flat_map(|label| [vec![label.len() as u8], label.as_bytes().to_vec()].concat()).collect();
    bytes.push(0);
    bytes
}

fn header(id: u16, flags: u16, counts: [u16; 4]) -> Vec<u8> {
    let words = [id, flags, counts[0], counts[1], counts[2], counts[3]];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn question(text: &str, kind: u16) -> Vec<u8> {
    [name(text), kind.to_be_bytes().to_vec(), vec![0, 1]].concat()
}

fn record(owner: &[u8], kind: u16, content: &[u8]) -> Vec<u8> {
    let fixed = [kind.to_be_bytes(), [0, 1], [0, 0], [1, 44], (content.len() as u16).to_be_bytes()].concat();
    [owner, &fixed, content].concat()
}

fn query(id: u16, text: &str, kind: u16) -> Vec<u8> {
    [header(id, 0x0100, [1, 0, 0, 0]), question(text, kind)].concat()
}

/// The name in the first question.
const POINTER: [u8; 2] = [0xc0, 12];

fn response(id: u16, text: &str, kind: u16, answers: &[Vec<u8>]) -> Vec<u8> {
    [header(id, 0x8180, [1, answers.len() as u16, 0, 0]), question(text, kind), answers.concat()].concat()
}

fn messages(carrier: Carrier, steps: &[(Side, Step)]) -> Vec<Message> {
    let events = run(carrier, steps).into_iter();
    events
        .filter_map(|event| match event {
            Event::Dns(message) => Some(message),
            _ => None,
        })
        .collect()
}

fn datagrams(steps: &[(Side, Vec<u8>)]) -> Vec<Message> {
    let steps: Vec<_> = steps.iter().map(|(side, bytes)| (*side, data(bytes))).collect();
    messages(Carrier::Datagrams, &steps)
}

fn behind_length(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

#[test]
fn a_question_and_its_answer() {
    let answer = response(
        7,
        "www.Example.org",
        1,
        &[record(&POINTER, 5, &name("cdn.example.net")), record(&name("cdn.example.net"), 1, &[10, 0, 0, 1])],
    );
    let found = datagrams(&[(C, query(7, "WWW.example.org", 1)), (S, answer)]);
    let [asked, answered] = &found[..] else { panic!("{found:?}") };
    assert!(!asked.is_response() && answered.is_response());
    assert_eq!((&*asked.questions[0].name, &*asked.questions[0].kind_name()), ("WWW.example.org", "A"));
    assert_eq!((asked.id, asked.flags, asked.side, asked.asked_ns), (7, 0x0100, C, None));
    assert_eq!((answered.transaction, answered.asked_ns, answered.time_ns), (asked.transaction, Some(0), 1));
    assert_eq!((answered.rcode(), answered.opcode(), &*answered.rcode_name()), (0, 0, "NOERROR"));
    assert_eq!(answered.answers[0].data, Data::Name("cdn.example.net".into()));
    assert_eq!((&*answered.answers[0].name, answered.answers[0].ttl), ("www.Example.org", 300));
    assert_eq!(answered.answers[1].data, Data::A(Ipv4Addr::new(10, 0, 0, 1)));
    assert!(asked.is_whole && answered.is_whole);
}

#[test]
fn the_data_of_records() {
    let soa = [name("ns.a"), name("root.a"), vec![0, 0, 0, 9], vec![0; 16]].concat();
    let answers = [
        record(&POINTER, 28, &Ipv6Addr::LOCALHOST.octets()),
        record(&POINTER, 15, &[vec![0, 10], name("mx.a")].concat()),
        record(&POINTER, 33, &[vec![0, 1, 0, 2, 0, 80], name("srv.a")].concat()),
        record(&POINTER, 6, &soa),
        record(&POINTER, 16, b"\x03abc\x02\xffd"),
        record(&POINTER, 12, &name("ptr.a")),
        record(&POINTER, 2, &name("ns.a")),
        record(&POINTER, 39, &name("d.a")),
        record(&POINTER, 65280, &[1, 2, 3]),
        // Data that is none of its type.
        record(&POINTER, 1, &[1, 2, 3]),
    ];
    let found = datagrams(&[(S, response(1, "a", 255, &answers))]);
    let data: Vec<_> = found[0].answers.iter().map(|record| record.data.clone()).collect();
    let text = |text: &str| Text::from(text);
    let expected = [
        Data::Aaaa(Ipv6Addr::LOCALHOST),
        Data::Mx { preference: 10, exchange: text("mx.a") },
        Data::Srv { priority: 1, weight: 2, port: 80, target: text("srv.a") },
        Data::Soa { server: text("ns.a"), mailbox: text("root.a"), serial: 9 },
        Data::Txt(text("abc\\xffd")),
        Data::Name(text("ptr.a")),
        Data::Name(text("ns.a")),
        Data::Name(text("d.a")),
        Data::Other(3),
        Data::Other(3),
    ];
    assert_eq!(data, expected);
    assert_eq!(found[0].answers[8].kind_name(), "TYPE65280");
    assert_eq!(found[0].questions[0].kind_name(), "ANY");
}

#[test]
fn types_that_nobody_has_given_out_are_asked_for() {
    let found = datagrams(&[(C, query(1, "tunnel.example", 65399))]);
    assert_eq!(found[0].questions[0].kind_name(), "TYPE65399");
}

#[test]
fn names_are_written_so_that_they_can_be_told_apart() {
    let odd = [header(1, 0, [1, 0, 0, 0]), b"\x04a.b\\\x01\x07\x02\xc3\xa4\x00\0\x01\0\x01".to_vec()].concat();
    let root = query(2, "", 2);
    let found = datagrams(&[(C, odd), (C, root)]);
    assert_eq!(&*found[0].questions[0].name, r"a\.b\\.\007.\195\164");
    assert_eq!(&*found[1].questions[0].name, ".");
}

#[test]
fn a_name_of_more_than_255_bytes_is_none_in_any_question() {
    // With the lengths of its labels, and that of the root.
    for (last, fits) in [(61, true), (62, false)] {
        let name = [63, 63, 63, last].map(|length| "a".repeat(length)).join(".");
        let asked = |at: usize| {
            let questions: Vec<_> =
                (0..=QUESTIONS).map(|number| question(if number == at { &name } else { "a" }, 1)).collect();
            datagrams(&[(C, [header(1, 0x0100, [QUESTIONS as u16 + 1, 0, 0, 0]), questions.concat()].concat())])
        };
        // By the first it is seen that this is DNS. The last is stepped over.
        assert_eq!(asked(0).len(), usize::from(fits));
        assert_eq!([40, QUESTIONS - 1, QUESTIONS].map(|at| asked(at)[0].is_whole), [fits; 3]);
    }
}

#[test]
fn multicast_dns_has_many_questions() {
    let asked = |count: usize, flags: u16, spoilt: Option<usize>| {
        let kind = |number: usize| if spoilt == Some(number) { 0 } else { 12 };
        let first = question("a.local", 12);
        // A label, a pointer to the first name's end, and a response to one host is wanted.
        let others = (1..count).map(|number| [vec![1, b'b', 0xc0, 14, 0, kind(number), 0x80, 1]].concat());
        [header(0, flags, [count as u16, 0, 0, 0]), first, others.flatten().collect()].concat()
    };
    for count in [17, 32, 33, 100, QUESTIONS, QUESTIONS + 1, 1000] {
        let found = datagrams(&[(C, asked(count, 0, None))]);
        let [message] = &found[..] else { panic!("{count}: {found:?}") };
        assert_eq!((message.questions.len(), usize::from(message.counts[0])), (count.min(QUESTIONS), count));
        assert!(message.is_whole && message.questions[1..].iter().all(|question| &*question.name == "b.local"));
    }
    assert_eq!(datagrams(&[(S, asked(40, 0x8400, None))]).len(), 1, "a response");
    // Not so many are there, or one of the first is none.
    assert_eq!(datagrams(&[(C, asked(40, 0, Some(31)))]), []);
    assert_eq!(datagrams(&[(C, asked(40, 0, Some(32)))]).len(), 1);
    assert_eq!(datagrams(&[(C, asked(40, 0x2000, None))]), [], "an operation");
    let mut few = asked(40, 0, None);
    few[5] = 80;
    assert_eq!(datagrams(&[(C, few)]), []);
    // Known answers and probes may be many too.
    let mut records = asked(2, 0, None);
    records[7] = 100;
    assert_eq!(datagrams(&[(C, records.clone())]), []);
    records.extend((0..100).flat_map(|_| record(&POINTER, 12, &POINTER)));
    assert_eq!(datagrams(&[(C, records)])[0].answers.len(), 64);
    assert_eq!(messages(Carrier::Stream, &[(C, data(behind_length(&asked(33, 0, None))))]), [], "over TCP");
}

#[test]
fn queries_are_told_apart_by_id_and_name() {
    let found = datagrams(&[
        (C, query(1, "a", 1)),
        (C, query(2, "a", 1)),
        (C, query(1, "b", 1)),
        (C, query(1, "a", 28)),
        (C, query(2, "a", 1)),
        (S, response(1, "b", 1, &[])),
        (S, response(2, "a", 1, &[])),
        (S, response(2, "a", 1, &[])),
        (S, response(3, "a", 1, &[])),
    ]);
    let pairs: Vec<_> = found.iter().map(|message| (message.transaction, message.asked_ns)).collect();
    // The fifth is the second again, and the last but one a second answer to it.
    let expected =
        [(0, None), (1, None), (2, None), (3, None), (1, None), (2, Some(2)), (1, Some(1)), (4, None), (5, None)];
    assert_eq!(pairs, expected);
}

#[test]
fn a_refusal_without_the_question_answers_by_its_id() {
    let refused = header(9, 0x8181, [0; 4]);
    let found = datagrams(&[(C, query(9, "a", 1)), (S, refused)]);
    assert_eq!((found[1].asked_ns, &*found[1].rcode_name()), (Some(0), "FORMERR"));
}

#[test]
fn of_a_cut_message_the_whole_part_is_read() {
    let answers = [record(&POINTER, 1, &[1, 2, 3, 4]), record(&POINTER, 1, &[5, 6, 7, 8])];
    let whole = response(1, "a.b", 1, &answers);
    for length in 12..whole.len() {
        let found = datagrams(&[(C, query(1, "a.b", 1)), (S, whole[..length].to_vec())]);
        assert!(!found[1].is_whole);
        let expected = (usize::from(length >= 21), (length.saturating_sub(21)) / 16);
        assert_eq!((found[1].questions.len(), found[1].answers.len()), expected, "{length}");
    }
    assert!(datagrams(&[(C, query(1, "a.b", 1)), (S, whole)])[1].is_whole);
}

#[test]
fn pointers_that_loop_end_the_message() {
    for owner in [[0xc0, 21], [0xc0, 23], [0xc0, 200]] {
        let looped = response(1, "a.b", 1, &[record(&owner, 1, &[1, 2, 3, 4])]);
        let found = datagrams(&[(C, query(1, "a.b", 1)), (S, looped)]);
        assert_eq!((found[1].questions.len(), found[1].answers.len(), found[1].is_whole), (1, 0, false));
    }
    // Back to a label in front of the pointer, again and again.
    let growing = response(1, "a.b", 1, &[record(&[1, b'x', 0xc0, 21], 1, &[1, 2, 3, 4])]);
    let found = datagrams(&[(C, query(1, "a.b", 1)), (S, growing)]);
    assert_eq!((found[1].answers.len(), found[1].is_whole), (0, false));
}

#[test]
fn a_chain_of_pointers_costs_little() {
    // Each name points to the pointer before it.
    let mut message = [header(1, 0x8180, [1, 4000, 0, 0]), question("a", 1)].concat();
    let mut last = 12_u16;
    while message.len() < 16_000 {
        let at = message.len() as u16;
        message.extend(record(&(0xc000 | last).to_be_bytes(), 65280, &[0; 4]));
        last = at;
    }
    let found = datagrams(&[(S, message)]);
    assert_eq!((found[0].answers.len(), found[0].is_whole), (32, false));
}

/// Compressed names stand for many times their bytes, and each byte that is escaped is four.
#[test]
fn texts_of_a_message_have_a_bound() {
    let name = [&[63][..], &[1; 63], &[63], &[1; 63], &[63], &[1; 63], &[61], &[1; 61]].concat();
    let mut message = [header(1, 0x8180, [1, 64, 0, 0]), name, vec![0, 0, 1, 0, 1]].concat();
    for _ in 0..64 {
        message.extend(record(&[0xc0, 12], 2, &[0xc0, 12]));
    }
    let length = message.len();
    let found = datagrams(&[(S, message)]);
    let texts = found[0].answers.iter().map(|record| match &record.data {
        Data::Name(name) => record.name.len() + name.len(),
        other => panic!("{other:?}"),
    });
    let texts = found[0].questions[0].name.len() + texts.sum::<usize>();
    assert!(texts <= TEXT + 4 * length && texts + 3 * 1024 > TEXT + 4 * length, "{texts}");
    assert!(!found[0].is_whole);
}

#[test]
fn counts_that_cannot_be_reserve_nothing() {
    // The sum of two counts is more than 16 bits.
    let many = [header(1, 0x8180, [1, 0xffff, 0, 0]), question("a", 1)].concat();
    assert!(datagrams(&[(S, many)]).is_empty());
    let found = datagrams(&[(C, query(1, "a", 1)), (S, header(1, 0x8180, [0xffff; 4]))]);
    assert_eq!((found[1].questions.capacity(), found[1].answers.capacity(), found[1].is_whole), (0, 0, false));
    assert_eq!(found[1].counts, [0xffff; 4]);
}

#[test]
fn messages_over_tcp_follow_their_lengths() {
    let (asked, answered) = (query(1, "a", 252), response(1, "a", 252, &[record(&POINTER, 1, &[1, 2, 3, 4])]));
    let twice = [behind_length(&asked), behind_length(&query(2, "b", 1))].concat();
    let found = messages(Carrier::Stream, &[(C, data(twice)), (S, data(behind_length(&answered)))]);
    assert_eq!(found.len(), 3);
    assert_eq!((found[2].transaction, found[2].asked_ns, found[2].answers.len()), (0, Some(0), 1));
}

#[test]
fn over_tcp_a_gap_in_a_message_is_skipped_by_its_length() {
    let (one, two) = (behind_length(&query(1, "first.example", 1)), behind_length(&query(2, "b", 1)));
    let steps = |gap: usize, rest: &[u8]| {
        [(C, data(&two)), (C, data(&one[..10])), (C, Step::Gap(gap as u64)), (C, data(rest)), (C, data(&two))]
    };
    assert_eq!(messages(Carrier::Stream, &steps(5, &one[15..])).len(), 2);
    assert_eq!(messages(Carrier::Stream, &steps(one.len() - 10, &two)).len(), 3);
    assert_eq!(messages(Carrier::Stream, &steps(500, &two)).len(), 1);
}
