//! The rules of TCP, one by one.

use crate::support::*;
use corelane_net::conversation::{Limits, Reason, Side};
use corelane_net::decode::mapped;

#[test]
fn a_bare_syn_begins_nothing() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    for _ in 0..3 {
        bench.take(&tcp.syn());
    }
    assert_eq!((bench.table.len(), bench.table.counts().bare_syns), (0, 3));
}

#[test]
fn what_no_conversation_has_begun_with_is_a_stray() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    for flags in
        [0, FIN, FIN | ACK, FIN | 0x28, RST, RST | ACK, ACK, SYN | FIN, SYN | RST, SYN | ACK | FIN, SYN | ACK | RST]
    {
        bench.take(&tcp.at(Originator, 0, 0, flags, b""));
    }
    // With payload: without ACK no host sends it, and RST and SYN begin nothing by it.
    for flags in [0, FIN, FIN | 0x28, RST | ACK, SYN | FIN | ACK] {
        bench.take(&tcp.at(Originator, 0, 0, flags, b"probe"));
    }
    assert_eq!((bench.table.len(), bench.table.counts().strays), (0, 16));
    bench.take(&tcp.at(Originator, 0, 0, SYN, b"payload on a SYN"));
    assert_eq!((bench.table.len(), bench.table.counts().bare_syns), (0, 1));
}

#[test]
fn the_syn_counts_once_there_is_a_conversation() {
    let (mut bench, mut tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn());
    tcp.time_ns += SECOND;
    bench.take(&tcp.syn());
    tcp.time_ns += SECOND;
    bench.take(&tcp.syn_ack());
    assert_eq!(bench.table.len(), 1);
    bench.table.finish(&mut bench.log);
    let over = &bench.log.over[0];
    assert_eq!(over.originator, "10.0.0.1:40000");
    assert_eq!((over.packets, over.bytes), ([2, 1], [108, 54]));
    assert_eq!(over.times, (100 * SECOND, 102 * SECOND));
    assert_eq!((over.reason, over.midstream, over.missed), (Reason::CaptureEnded, false, [0, 0]));
    assert!(over.notes.is_none(), "no application without payload");
}

#[test]
fn an_attempt_that_leads_to_nothing_is_told_once() {
    let attempts = |bench: &Bench| {
        let of = |over: &Over| (over.originator.clone(), over.reason, over.packets, over.times);
        bench.log.attempts.iter().map(of).collect::<Vec<_>>()
    };
    let client = || "10.0.0.1:40000".to_owned();
    // Refused, with another number and before its SYN first, which refuse nothing.
    let (mut bench, mut tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Responder, -5000, 0, RST | ACK, b""));
    bench.take(&tcp.syn());
    bench.take(&tcp.at(Responder, -5000, -1, RST | ACK, b""));
    bench.take(&tcp.at(Originator, 0, 0, RST | ACK, b""));
    assert!(bench.log.attempts.is_empty());
    tcp.time_ns += SECOND;
    bench.take(&tcp.syn());
    bench.take(&tcp.at(Responder, -5000, 0, RST | ACK, b""));
    bench.take(&tcp.at(Responder, -5000, 0, RST | ACK, b""));
    let refused = (client(), Reason::Reset, [2, 1], (100 * SECOND, 101 * SECOND));
    assert_eq!(attempts(&bench), [refused]);
    assert_eq!(
        bench.table.next_due(),
        Some(tcp.time_ns - SECOND + 60 * SECOND).map(|due| due.next_multiple_of(1 << 34))
    );
    bench.expire(300 * SECOND);
    assert_eq!((bench.table.next_due(), bench.log.attempts.len()), (None, 1));
    // Not answered in its time, nor later; an answer may come all the same.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn());
    bench.expire(160 * SECOND - 1);
    assert!(bench.log.attempts.is_empty());
    bench.expire(178 * SECOND);
    bench.expire(500 * SECOND);
    let silent = || (client(), Reason::TimedOut, [1, 0], (100 * SECOND, 100 * SECOND));
    assert_eq!(attempts(&bench), [silent()]);
    bench.take(&tcp.syn_ack());
    bench.table.finish(&mut bench.log);
    assert_eq!((bench.log.attempts.len(), bench.log.over[0].packets), (1, [1, 1]));
    // Not answered before the end; tried anew with another number.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn());
    bench.take(&tcp.at(Originator, 77, 0, SYN, b"with payload"));
    assert_eq!(attempts(&bench), [silent()]);
    bench.table.finish(&mut bench.log);
    assert_eq!(attempts(&bench), [silent(), silent()]);
    assert_eq!((bench.log.over.len(), bench.table.counts().conversations), (0, 0));
    // Answered.
    let (mut bench, _) = opened();
    bench.expire(500 * SECOND);
    bench.table.finish(&mut bench.log);
    assert!(bench.log.attempts.is_empty());
}

#[test]
fn a_syn_ack_tells_who_opened_even_without_the_syn() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn_ack());
    bench.take(&tcp.send(Originator, 2, b"cd"));
    bench.take(&tcp.send(Originator, 0, b"ab"));
    let (notes, over) = bench.only();
    assert_eq!(over.originator, "10.0.0.1:40000");
    assert_eq!(notes.side(Originator), [data(Originator, "ab"), data(Originator, "cd"), Event::End(Originator)]);
}

#[test]
fn a_trace_of_another_syn_is_not_believed() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Originator, -5_000_000, 0, SYN, b""));
    bench.take(&tcp.syn_ack());
    bench.take(&tcp.send(Originator, 0, b"ab"));
    let (notes, over) = bench.only();
    assert_eq!((notes.bytes(Originator), over.packets[0]), (vec![Some(b'a'), Some(b'b')], 1));
}

#[test]
fn the_trace_is_that_of_the_last_syn() {
    let (mut bench, mut tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Originator, -5_000_000, 0, SYN, b""));
    tcp.time_ns += SECOND;
    bench.take(&tcp.syn());
    bench.take(&tcp.syn_ack());
    bench.table.finish(&mut bench.log);
    let over = &bench.log.over[0];
    assert_eq!((over.packets, over.times), ([1, 1], (101 * SECOND, 101 * SECOND)));
}

#[test]
fn the_trace_has_its_own_time_though_others_are_ahead() {
    let (mut bench, mut tcp) = (Bench::new(), Tcp::default());
    bench.take(&udp((1, 1), (2, 2), tcp.time_ns + 5, b"ahead"));
    bench.take(&tcp.syn());
    tcp.time_ns += 3;
    bench.take(&tcp.syn_ack());
    bench.table.finish(&mut bench.log);
    let over = bench.log.over.iter().find(|over| over.originator == "10.0.0.1:40000").unwrap();
    assert_eq!((over.packets, over.times), ([1, 1], (100 * SECOND, 100 * SECOND + 3)));
}

#[test]
fn a_trace_tells_where_data_begins_whose_syn_ack_was_missed() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn());
    bench.take(&tcp.send(Responder, 2, b"CD"));
    bench.take(&tcp.send(Originator, 2, b"cd"));
    bench.take(&tcp.send(Originator, 0, b"ab"));
    let (notes, over) = bench.only();
    assert_eq!((over.originator.as_str(), over.midstream), ("10.0.0.1:40000", false));
    let of_originator = [data(Originator, "ab"), data(Originator, "cd"), Event::End(Originator)];
    assert_eq!(notes.side(Originator), of_originator);
}

#[test]
fn bytes_in_order_are_not_copied() {
    let (mut bench, tcp) = opened();
    let stream = b"abcdefghij";
    for (at, piece) in stream.chunks(3).enumerate() {
        bench.take(&tcp.send(Originator, 3 * at as i64, piece));
    }
    let (notes, _) = bench.only();
    assert_eq!(notes.places, stream.chunks(3).map(|piece| piece.as_ptr() as usize).collect::<Vec<_>>());
}

#[test]
fn a_hole_that_is_filled_is_no_gap() {
    let (mut bench, tcp) = opened();
    for at in [6, 3, 9, 0, 12] {
        bench.take(&tcp.send(Originator, at, b"abc"));
    }
    assert_eq!(bench.table.held_bytes(), 0);
    assert_eq!((bench.table.counts().held_back, bench.table.counts().gaps), (3, 0));
    assert_eq!(bench.table.counts().retransmitted, 0, "neighbours do not overlap");
    let (notes, over) = bench.only();
    assert_eq!(notes.bytes(Originator).len(), 15);
    assert_eq!(over.missed, [0, 0]);
}

#[test]
fn a_hole_of_one_side_does_not_hold_the_other() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Responder, 1, b"b"));
    bench.take(&tcp.send(Originator, 0, b"question"));
    bench.take(&tcp.send(Responder, 0, b"a"));
    let (notes, _) = bench.only();
    assert_eq!(notes.events[..3], [data(Originator, "question"), data(Responder, "a"), data(Responder, "b")]);
}

#[test]
fn the_first_copy_stays() {
    let (mut bench, tcp) = opened();
    // Held back: the later copy fills around it, in front of it and behind it.
    bench.take(&tcp.send(Originator, 4, b"45"));
    bench.take(&tcp.send(Originator, 3, b"xXx6"));
    assert_eq!(bench.table.counts().conflicts, 1);
    // In order, over what is held back.
    bench.take(&tcp.send(Originator, 0, b"012yyyy7"));
    assert_eq!(bench.table.counts().conflicts, 4, "one for each piece that differs");
    // Handed over already: nothing to compare with.
    bench.take(&tcp.send(Originator, 2, b"zzzzzz8"));
    assert_eq!(bench.table.counts().conflicts, 4);
    let (notes, _) = bench.only();
    let bytes: Vec<u8> = notes.bytes(Originator).into_iter().flatten().collect();
    assert_eq!(String::from_utf8(bytes).unwrap(), "012x45678");
}

#[test]
fn overlaps_that_agree_are_no_conflict() {
    let (mut bench, tcp) = opened();
    let stream = b"0123456789";
    for (from, to) in [(4, 6), (3, 7), (2, 5), (0, 9), (0, 10)] {
        bench.take(&tcp.send(Originator, from, &stream[from as usize..to]));
    }
    assert_eq!(bench.table.counts().conflicts, 0);
    let (notes, _) = bench.only();
    assert_eq!(notes.bytes(Originator), stream.map(Some));
}

#[test]
fn retransmissions_are_counted_and_left_out() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Originator, 0, b"abcd"));
    bench.take(&tcp.send(Originator, 0, b"abcd"));
    bench.take(&tcp.send(Originator, 2, b"cdef"));
    assert_eq!(bench.table.counts().retransmitted, 2);
    let (notes, _) = bench.only();
    assert_eq!(notes.events[..2], [data(Originator, "abcd"), data(Originator, "ef")]);
}

#[test]
fn a_hole_that_was_acknowledged_is_given_up_when_something_is_behind_it() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Responder, 0, b"ab"));
    // 2..5 is missing. An acknowledgment may be captured before what it acknowledges: the hole stays.
    bench.take(&tcp.at(Originator, 0, 5, ACK, b""));
    assert_eq!(bench.table.counts().gaps, 0);
    // Behind it, in this case without a copy.
    let next = *b"fg";
    bench.take(&tcp.send(Responder, 5, &next));
    assert_eq!((bench.table.counts().gaps, bench.table.counts().gap_bytes), (1, 3));
    assert_eq!(bench.table.counts().held_back, 0);
    let (notes, over) = bench.only();
    let expected = [data(Responder, "ab"), Event::Gap(Responder, 3), data(Responder, "fg"), Event::End(Responder)];
    assert_eq!(notes.side(Responder), expected);
    assert_eq!(notes.places[1], next.as_ptr() as usize);
    assert_eq!(over.missed, [0, 3]);
}

#[test]
fn an_acknowledgment_gives_up_the_hole_in_front_of_what_waits() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Responder, 3, b"de"));
    bench.take(&tcp.send(Responder, 7, b"hi"));
    // Not yet all of the first hole.
    bench.take(&tcp.at(Originator, 0, 2, ACK, b""));
    assert_eq!(bench.table.counts().gaps, 0);
    bench.take(&tcp.at(Originator, 0, 5, ACK, b"next"));
    assert_eq!((bench.table.counts().gaps, bench.table.counts().holes_acknowledged), (1, 1));
    let (notes, _) = bench.only();
    // The answer comes before the question that acknowledges it.
    assert_eq!(notes.events[..3], [Event::Gap(Responder, 3), data(Responder, "de"), data(Originator, "next")]);
}

#[test]
fn an_acknowledgment_that_was_overtaken_takes_nothing_back() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 0, 5, ACK, b""));
    bench.take(&tcp.at(Originator, 0, 2, ACK, b""));
    bench.take(&tcp.send(Responder, 5, b"fg"));
    assert_eq!((bench.table.counts().gap_bytes, bench.table.counts().held_back), (5, 0));
}

#[test]
fn late_bytes_are_no_gap_although_they_were_acknowledged() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 0, 6, ACK, b""));
    bench.take(&tcp.send(Responder, 0, b"abc"));
    bench.take(&tcp.send(Responder, 3, b"def"));
    let (notes, over) = bench.only();
    assert_eq!((notes.bytes(Responder).len(), over.missed), (6, [0, 0]));
}

#[test]
fn too_many_bytes_of_a_side_give_up_its_first_hole() {
    let limits = Limits { held_per_side: 1000, ..Limits::default() };
    let (mut bench, tcp) = (Bench::with(&limits), Tcp::default());
    tcp.open(&mut bench);
    let piece = [7; 100];
    for at in 0..7 {
        bench.take(&tcp.send(Originator, 10 + 200 * at, &piece));
    }
    // Seven pieces of 140 fit, the eighth does not.
    assert_eq!((bench.table.held_bytes(), bench.table.counts().gaps), (980, 0));
    bench.take(&tcp.send(Originator, 10 + 200 * 7, &piece));
    assert_eq!((bench.table.held_bytes(), bench.table.counts().gaps), (980, 1));
    assert_eq!((bench.table.counts().holes_over_limit, bench.table.counts().gap_bytes), (1, 10));
    let (notes, over) = bench.only();
    assert_eq!(notes.events[..2], [Event::Gap(Originator, 10), data(Originator, piece)]);
    assert_eq!(over.missed, [710, 0]);
}

#[test]
fn bytes_that_no_limit_lets_wait_go_through_behind_a_gap() {
    for limits in [
        Limits { held_per_side: 100, ..Limits::default() },
        Limits { held_per_conversation: 100, ..Limits::default() },
        Limits { held: 100, ..Limits::default() },
    ] {
        let (mut bench, tcp) = (Bench::with(&limits), Tcp::default());
        tcp.open(&mut bench);
        let piece = [7; 100];
        bench.take(&tcp.send(Originator, 10, &piece));
        bench.take(&tcp.send(Originator, 110, &piece));
        assert_eq!((bench.table.held_bytes(), bench.table.counts().holes_over_limit), (0, 1));
        let (notes, _) = bench.only();
        let expected = [Event::Gap(Originator, 10), data(Originator, piece), data(Originator, piece)];
        assert_eq!(notes.events[..3], expected);
        assert_eq!(notes.places[0], piece.as_ptr() as usize, "without a copy");
    }
}

#[test]
fn what_a_conversation_may_hold_is_for_both_sides_together() {
    let limits = Limits { held_per_conversation: 280, ..Limits::default() };
    let (mut bench, tcp) = (Bench::with(&limits), Tcp::default());
    tcp.open(&mut bench);
    let piece = [7; 100];
    bench.take(&tcp.send(Originator, 10, &piece));
    bench.take(&tcp.send(Responder, 10, &piece));
    assert_eq!((bench.table.held_bytes(), bench.table.counts().gaps), (280, 0));
    bench.take(&tcp.send(Responder, 210, &piece));
    assert_eq!((bench.table.held_bytes(), bench.table.counts().gaps), (280, 1));
}

#[test]
fn a_fin_ends_a_side_in_its_place() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 3, 0, FIN | ACK, b"de"));
    bench.take(&tcp.send(Originator, 0, b"abc"));
    assert_eq!(bench.table.counts().finished, 0);
    bench.take(&tcp.at(Responder, 0, 6, FIN | ACK, b""));
    assert_eq!(bench.table.counts().finished, 1);
    bench.take(&tcp.at(Originator, 6, 1, ACK, b""));
    let (notes, over) = bench.only();
    assert_eq!(notes.side(Originator), [data(Originator, "abc"), data(Originator, "de"), Event::End(Originator)]);
    assert_eq!((over.reason, over.packets), (Reason::Finished, [5, 2]));
}

#[test]
fn a_fin_alone_waits_for_what_comes_before_it() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 2, 0, FIN | ACK, b""));
    bench.take(&tcp.send(Originator, 0, b"ab"));
    let (notes, _) = bench.only();
    assert_eq!(notes.side(Originator), [data(Originator, "ab"), Event::End(Originator)]);
    // And no longer than until it is acknowledged itself.
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 2, 0, FIN | ACK, b""));
    bench.take(&tcp.at(Responder, 0, 3, ACK, b"x"));
    let (notes, over) = bench.only();
    assert_eq!(notes.events[..3], [Event::Gap(Originator, 2), Event::End(Originator), data(Responder, "x")]);
    assert_eq!(over.missed, [2, 0]);
}

#[test]
fn nothing_comes_behind_a_fin() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Originator, 4, b"efgh"));
    bench.take(&tcp.send(Originator, 9, b"jk"));
    bench.take(&tcp.at(Originator, 6, 0, FIN | ACK, b""));
    bench.take(&tcp.send(Originator, 2, b"cdefgh"));
    bench.take(&tcp.send(Originator, 0, b"ab"));
    bench.take(&tcp.send(Originator, 6, b"gh"));
    assert_eq!((bench.table.held_bytes(), bench.table.counts().behind_end), (0, 4));
    let (notes, _) = bench.only();
    assert_eq!(notes.bytes(Originator), b"abcdef".map(Some));
}

#[test]
fn both_ends_may_close_without_a_byte() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 0, 0, FIN | ACK, b""));
    bench.take(&tcp.at(Responder, 0, 1, FIN | ACK, b""));
    assert_eq!((bench.table.counts().finished, bench.log.begun), (1, 0));
    // One of them, and the application of the other hears of it.
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Originator, 0, 0, FIN | ACK, b""));
    bench.take(&tcp.send(Responder, 0, b"bye"));
    let (notes, _) = bench.only();
    assert_eq!(notes.events[..2], [Event::End(Originator), data(Responder, "bye")]);
}

#[test]
fn an_rst_ends_both_sides_with_what_was_held_back() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Responder, 2, b"cd"));
    bench.take(&tcp.at(Originator, 0, 0, RST, b""));
    let counts = *bench.table.counts();
    assert_eq!((counts.reset, counts.finished), (1, 0));
    bench.take(&tcp.send(Responder, 4, b"late"));
    assert_eq!(bench.table.counts().behind_end, 1);
    let (notes, over) = bench.only();
    assert_eq!(notes.side(Responder), [Event::Gap(Responder, 2), data(Responder, "cd"), Event::End(Responder)]);
    assert_eq!(over.reason, Reason::Reset);
}

/// RFC 5961, 3.2, as far as an observer knows which byte is next at the other end.
#[test]
fn an_rst_counts_only_with_the_number_of_the_next_byte() {
    // The client has sent 100 bytes, of which 40 are acknowledged, and 50 more behind a hole of 10.
    let play = |at: i64| {
        let (mut bench, tcp) = opened();
        bench.take(&tcp.send(Originator, 0, &[b'a'; 100]));
        bench.take(&tcp.at(Responder, 0, 40, ACK, b""));
        bench.take(&tcp.send(Originator, 110, &[b'c'; 50]));
        bench.take(&tcp.at(Originator, at, 0, RST, b""));
        let counts = *bench.table.counts();
        assert_eq!(counts.reset + counts.implausible, 1, "{at}");
        bench.take(&tcp.send(Originator, 100, &[b'b'; 10]));
        let (notes, over) = bench.only();
        assert_eq!(over.reason == Reason::Reset, counts.reset == 1);
        assert_eq!(notes.bytes(Originator).contains(&Some(b'b')), counts.reset == 0, "{at}");
        counts.reset == 1
    };
    for at in [40, 41, 99, 100, 101, 160, 161] {
        assert!(play(at), "{at}");
    }
    for at in [0, 39, 162, 500_000, -500_000, 1 << 30, -(1 << 30)] {
        assert!(!play(at), "{at}");
    }
    // Behind a FIN, which has a number, too.
    for at in [2, 3, 4, 5] {
        let (mut bench, tcp) = opened();
        bench.take(&tcp.at(Originator, 0, 0, FIN | ACK, b"end"));
        bench.take(&tcp.at(Responder, 0, 4, ACK, b"answer"));
        bench.take(&tcp.at(Originator, at, 0, RST, b""));
        assert_eq!(bench.table.counts().reset, u64::from(at == 3 || at == 4), "{at}");
    }
    // Where only one direction was captured, what lies before is not known.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.send(Originator, 0, b"abc"));
    bench.take(&tcp.at(Originator, 500_000, 0, RST, b""));
    bench.take(&tcp.at(Originator, 3, 0, RST, b""));
    assert_eq!((bench.table.counts().reset, bench.table.counts().implausible), (1, 1));
    // A side that has sent nothing so far.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Originator, 0, 7, ACK, b"abc"));
    bench.take(&tcp.at(Responder, 7, 0, RST, b""));
    assert_eq!(bench.table.counts().reset, 1);
}

/// Whatever the first SYN-ACK was, forged or one that was lost on its way.
#[test]
fn the_syn_ack_counts_that_the_client_acknowledges() {
    for first in [3_000_000_000, 4990, 5100] {
        for acknowledged in [true, false] {
            let (mut bench, tcp) = (Bench::new(), Tcp::default());
            let other = Tcp { first: [1000, first], ..tcp.clone() };
            bench.take(&tcp.syn());
            bench.take(&other.syn_ack());
            bench.take(&tcp.syn_ack());
            if acknowledged {
                bench.take(&tcp.at(Originator, 0, 0, ACK, b""));
                // What comes then is forged.
                bench.take(&Tcp { first: [1000, 2_000_000_000], ..tcp.clone() }.syn_ack());
            }
            bench.take(&tcp.send(Originator, 0, b"question"));
            bench.take(&tcp.send(Responder, 0, b"answer"));
            let (notes, over) = bench.only();
            assert_eq!(notes.bytes(Responder), b"answer".map(Some), "{first} {acknowledged}");
            assert_eq!((notes.bytes(Originator).len(), over.missed), (8, [0, 0]));
        }
    }
    // The first may be the right one, too.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.syn());
    bench.take(&tcp.syn_ack());
    bench.take(&Tcp { first: [1000, 77], ..tcp.clone() }.syn_ack());
    bench.take(&tcp.at(Originator, 0, 0, ACK, b"question"));
    bench.take(&tcp.send(Responder, 0, b"answer"));
    assert_eq!(bench.only().0.bytes(Responder), b"answer".map(Some));
}

/// A middlebox that counts the padding of a short frame as payload.
#[test]
fn zero_bytes_of_an_acknowledgment_are_padding_unless_the_next_segment_is_behind_them() {
    for length in 1..=6_usize {
        let zeros = &[0; 6][..length];
        for behind in [0, length] {
            let (mut bench, tcp) = opened();
            bench.take(&tcp.at(Originator, 0, 0, ACK, zeros));
            assert_eq!(bench.log.begun, 0);
            bench.take(&tcp.send(Originator, behind as i64, b"hello"));
            bench.take(&tcp.at(Responder, 0, (behind + 5) as i64, ACK, zeros));
            bench.take(&tcp.at(Responder, behind as i64, 0, PSH | ACK, b"answer"));
            bench.take(&tcp.at(Originator, (behind + 5) as i64, (behind + 6) as i64, ACK, zeros));
            bench.take(&tcp.at(Originator, (behind + 5) as i64, (behind + 6) as i64, ACK | FIN, b""));
            let (notes, over) = bench.only();
            let with = |text: &[u8]| [&zeros[..behind], text].concat().into_iter().map(Some).collect::<Vec<_>>();
            assert_eq!(notes.bytes(Originator), with(b"hello"), "{length} {behind}");
            assert_eq!((notes.bytes(Responder), over.missed), (with(b"answer"), [0, 0]), "{length} {behind}");
        }
    }
    // What is pushed, longer, no zeros or in a longer frame is payload.
    let (bytes, long) = ([0; 7], 100);
    for (payload, flags, wire_len) in
        [(&bytes[..2], PSH | ACK, 56), (&bytes[..], ACK, 61), (b"\0a", ACK, 56), (&bytes[..2], ACK, long)]
    {
        let (mut bench, tcp) = opened();
        let mut packet = tcp.at(Originator, 0, 0, flags, payload);
        packet.wire_len = wire_len;
        bench.take(&packet);
        assert_eq!(bench.only().0.bytes(Originator).len(), payload.len());
    }
}

#[test]
fn an_application_learns_that_an_answer_came_before_its_question() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Responder, 0, 8, ACK, b"answer"));
    bench.take(&tcp.at(Originator, 0, 0, ACK, b"question"));
    bench.take(&tcp.at(Responder, 6, 8, ACK, b"more"));
    let (notes, _) = bench.only();
    assert_eq!(notes.early, [Responder]);
}

#[test]
fn sequence_numbers_wrap_around() {
    for first in [u32::MAX, u32::MAX - 4, 0x7fff_fffe, 0] {
        let (mut bench, tcp) = (Bench::new(), Tcp { first: [first, first], ..Tcp::default() });
        tcp.open(&mut bench);
        let stream = b"0123456789abcdef";
        for (from, to) in [(12, 16), (3, 6), (5, 9), (0, 3), (8, 13)] {
            bench.take(&tcp.send(Originator, from as i64, &stream[from..to]));
        }
        bench.take(&tcp.at(Originator, 16, 0, FIN | ACK, b""));
        bench.take(&tcp.send(Responder, 3, b"def"));
        bench.take(&tcp.at(Originator, 17, 6, ACK, b""));
        let (notes, _) = bench.only();
        assert_eq!(notes.bytes(Originator), stream.map(Some));
        assert_eq!(notes.bytes(Responder), [None, None, None, Some(b'd'), Some(b'e'), Some(b'f')]);
    }
}

#[test]
fn keep_alives_and_probes_of_a_closed_window_change_nothing() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Originator, 0, b"ab"));
    bench.take(&tcp.send(Originator, 1, b"\0"));
    bench.take(&tcp.at(Originator, 1, 0, ACK, b""));
    assert_eq!(bench.table.counts().keep_alives, 2);
    // The window is closed: the next byte alone, twice, then all that waited.
    bench.take(&tcp.send(Originator, 2, b"c"));
    bench.take(&tcp.send(Originator, 2, b"c"));
    bench.take(&tcp.send(Originator, 2, b"cdef"));
    let (notes, over) = bench.only();
    assert_eq!((notes.bytes(Originator), over.missed), (b"abcdef".map(Some).to_vec(), [0, 0]));
}

#[test]
fn a_connection_is_picked_up_in_its_middle() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Originator, 1_000_000, 70, ACK, b"middle"));
    // What the other end had sent already is not known to be the start.
    bench.take(&tcp.at(Responder, 66, 1_000_006, ACK, b"mid"));
    bench.take(&tcp.at(Responder, 69, 1_000_006, ACK, b"dle"));
    assert_eq!(bench.table.counts().midstream, 1);
    let (notes, over) = bench.only();
    assert!(over.midstream);
    assert_eq!(
        (notes.bytes(Originator), notes.bytes(Responder)),
        (b"middle".map(Some).into(), b"middle".map(Some).into())
    );
    assert_eq!(over.missed, [0, 0]);
}

#[test]
fn in_the_middle_a_service_is_not_the_originator() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Responder, 10, 0, ACK, b"answer"));
    let (notes, over) = bench.only();
    assert_eq!(over.originator, "10.0.0.1:40000");
    assert_eq!(notes.side(Responder)[0], data(Responder, "answer"));
    let (mut bench, mut tcp) = (Bench::new(), Tcp::default());
    tcp.ends = [(mapped(1), 6000), (mapped(2), 7000)];
    bench.take(&tcp.at(Responder, 10, 0, ACK, b"answer"));
    assert_eq!(bench.only().1.originator, "0.0.0.2:7000");
}

#[test]
fn a_hole_right_behind_the_pick_up_is_one() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.take(&tcp.at(Originator, 0, 70, ACK, b"q"));
    bench.take(&tcp.at(Responder, 73, 1, ACK, b"swer"));
    bench.take(&tcp.at(Responder, 70, 1, ACK, b"an-"));
    let (notes, _) = bench.only();
    assert_eq!(notes.bytes(Responder), b"an-swer".map(Some));
}

#[test]
fn a_stray_number_is_left_out_and_four_in_a_row_are_right() {
    let (mut bench, tcp) = opened();
    let far = 1 << 29;
    bench.take(&tcp.send(Originator, 0, b"ab"));
    for at in 0..3 {
        bench.take(&tcp.send(Originator, far + at, b"x"));
    }
    // One that fits: the three were another connection's.
    bench.take(&tcp.send(Originator, 2, b"cd"));
    for at in 0..4 {
        bench.take(&tcp.send(Originator, far + 4 + at, b"y"));
    }
    let counts = *bench.table.counts();
    assert_eq!((counts.implausible, counts.resynchronised), (7, 1));
    let (notes, _) = bench.only();
    let gap = Event::Gap(Originator, (far + 7 - 4) as u64);
    assert_eq!(notes.events[..4], [data(Originator, "ab"), data(Originator, "cd"), gap, data(Originator, "y")]);
}

#[test]
fn a_number_that_goes_back_for_good_goes_on_as_well() {
    let (mut bench, tcp) = opened();
    let back = -(1 << 29);
    bench.take(&tcp.send(Originator, 0, b"ab"));
    bench.take(&tcp.send(Originator, 4, b"held"));
    for at in 0..5 {
        bench.take(&tcp.send(Originator, back + at, b"x"));
    }
    let (notes, _) = bench.only();
    let gap = |missing| Event::Gap(Originator, missing);
    let x = || data(Originator, "x");
    assert_eq!(notes.events[..6], [data(Originator, "ab"), gap(2), data(Originator, "held"), gap(1), x(), x()]);
}

#[test]
fn what_was_not_captured_of_a_segment_is_a_gap() {
    let (mut bench, tcp) = opened();
    let mut cut = tcp.send(Originator, 0, b"ab");
    cut.cut = 3;
    bench.take(&cut);
    bench.take(&tcp.send(Originator, 5, b"fg"));
    // All of it known, then a part of it.
    bench.take(&cut);
    let mut cut = tcp.send(Originator, 6, b"gh");
    cut.cut = 2;
    bench.take(&cut);
    let mut only_cut = tcp.send(Originator, 9, b"");
    only_cut.cut = 4;
    bench.take(&only_cut);
    bench.take(&tcp.send(Originator, 13, b"n"));
    let (notes, over) = bench.only();
    let text: String = notes.bytes(Originator).into_iter().map(|byte| byte.map_or('.', char::from)).collect();
    assert_eq!((text.as_str(), over.missed), ("ab...fgh.....n", [8, 0]));
}

#[test]
fn what_was_not_captured_may_be_held_back_already() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Originator, 3, b"d"));
    let mut cut = tcp.send(Originator, 0, b"ab");
    cut.cut = 3;
    bench.take(&cut);
    let (notes, _) = bench.only();
    assert_eq!(notes.bytes(Originator), [Some(b'a'), Some(b'b'), None, Some(b'd'), None]);
}

#[test]
fn idle_conversations_go_by_the_time_of_their_kind_and_never_early() {
    let limits = Limits::default();
    // How far the connection got, and how long it may then be idle.
    type Step = fn(&Tcp, &mut Bench);
    let open: Step = |tcp, bench| bench.take(&tcp.syn_ack());
    let established: Step = |tcp, bench| tcp.open(bench);
    let closed: Step = |tcp, bench| {
        tcp.open(bench);
        bench.take(&tcp.at(Originator, 0, 0, RST, b""));
    };
    let cases = [
        (open, limits.unconfirmed_timeout_ns, Reason::TimedOut),
        (established, limits.tcp_timeout_ns, Reason::TimedOut),
        (closed, limits.closed_timeout_ns, Reason::Reset),
    ];
    for (step, timeout, reason) in cases {
        let (mut bench, tcp) = (Bench::with(&limits), Tcp::default());
        step(&tcp, &mut bench);
        bench.expire(tcp.time_ns + timeout - 1);
        assert_eq!(bench.table.len(), 1, "{timeout}");
        // The lists know the time to a second or two.
        bench.expire(tcp.time_ns + timeout + 3 * SECOND);
        assert_eq!(bench.table.len(), 0, "{timeout}");
        assert_eq!(bench.log.over[0].reason, reason);
    }
}

#[test]
fn a_packet_keeps_a_conversation() {
    let (mut bench, mut tcp) = opened();
    let timeout = Limits::default().tcp_timeout_ns;
    for at in 0..5 {
        tcp.time_ns += timeout - SECOND;
        bench.expire(tcp.time_ns);
        bench.take(&tcp.send(Originator, at, b"."));
    }
    assert_eq!(bench.table.len(), 1);
    // One that comes too late for what was there is a new one.
    tcp.time_ns += timeout + 3 * SECOND;
    bench.expire(tcp.time_ns);
    bench.take(&tcp.send(Originator, 5, b"."));
    assert_eq!((bench.table.counts().timed_out, bench.table.counts().midstream), (1, 1));
}

#[test]
fn times_that_go_back_do_no_harm() {
    let (mut bench, mut tcp) = opened();
    tcp.time_ns = 5;
    bench.take(&tcp.send(Originator, 0, b"a"));
    bench.expire(7);
    tcp.time_ns = u64::MAX;
    bench.take(&tcp.send(Originator, 1, b"b"));
    bench.expire(u64::MAX);
    tcp.time_ns = 6;
    bench.take(&tcp.send(Originator, 2, b"c"));
    bench.expire(u64::MAX);
    let (notes, over) = bench.only();
    assert_eq!((notes.bytes(Originator).len(), over.times), (3, (5, u64::MAX)));
}

#[test]
fn where_nobody_acknowledges_a_hole_is_given_up_after_a_time() {
    let limits = Limits::default();
    let (mut bench, mut tcp) = (Bench::with(&limits), Tcp::default());
    // One direction of a capture.
    bench.take(&tcp.syn());
    bench.take(&tcp.send(Originator, 0, b"ab"));
    bench.take(&tcp.send(Originator, 4, b"ef"));
    bench.take(&tcp.send(Originator, 8, b"ij"));
    bench.expire(tcp.time_ns + limits.hole_timeout_ns - 1);
    assert_eq!(bench.table.counts().gaps, 0);
    tcp.time_ns += limits.hole_timeout_ns;
    bench.expire(tcp.time_ns);
    assert_eq!((bench.table.counts().holes_timed_out, bench.table.counts().gap_bytes), (1, 2));
    // The next hole has its own time.
    bench.expire(tcp.time_ns + 1);
    assert_eq!(bench.table.counts().gaps, 1);
    bench.expire(tcp.time_ns + limits.hole_timeout_ns);
    assert_eq!((bench.table.counts().gaps, bench.table.held_bytes()), (2, 0));
}

#[test]
fn where_somebody_acknowledges_a_hole_waits_for_that() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.at(Responder, 0, 0, ACK, b""));
    bench.take(&tcp.send(Originator, 4, b"ef"));
    bench.expire(tcp.time_ns + 100 * SECOND);
    assert_eq!(bench.table.counts().gaps, 0);
}

#[test]
fn a_new_connection_may_have_the_ports_of_a_closed_one() {
    let (mut bench, mut tcp) = opened();
    bench.take(&tcp.send(Originator, 0, b"old"));
    bench.take(&tcp.at(Originator, 3, 0, RST, b""));
    tcp.first = [77_777, 88_888];
    tcp.open(&mut bench);
    assert_eq!(bench.log.over[0].reason, Reason::Reset);
    bench.take(&tcp.send(Originator, 0, b"new"));
    bench.table.finish(&mut bench.log);
    let notes: Vec<_> = bench.log.over.iter().map(|over| over.notes.as_ref().unwrap().bytes(Originator)).collect();
    assert_eq!(notes, [b"old".map(Some), b"new".map(Some)]);
    assert_eq!(bench.log.over[1].packets, [3, 1]);
}

#[test]
fn a_new_connection_may_have_the_ports_of_one_that_is_forgotten() {
    let (mut bench, mut tcp) = opened();
    bench.take(&tcp.send(Originator, 0, b"old"));
    // A SYN says nothing yet: any host can send one.
    let mut anew = tcp.clone();
    anew.first = [77_777, 88_888];
    bench.take(&anew.syn());
    bench.take(&tcp.send(Originator, 3, b"er"));
    // Neither does its answer where there was no SYN.
    tcp.time_ns += SECOND;
    let mut nobody = tcp.clone();
    nobody.first = [99, 99];
    bench.take(&nobody.syn_ack());
    assert_eq!(bench.table.counts().replaced, 0);
    bench.take(&anew.syn_ack());
    assert_eq!(bench.table.counts().replaced, 1);
    bench.take(&anew.send(Originator, 0, b"new"));
    bench.table.finish(&mut bench.log);
    let notes: Vec<_> = bench.log.over.iter().map(|over| over.notes.as_ref().unwrap().bytes(Originator)).collect();
    assert_eq!(notes, [b"older".map(Some).to_vec(), b"new".map(Some).to_vec()]);
}

#[test]
fn a_handshake_that_comes_again_changes_nothing() {
    let (mut bench, tcp) = opened();
    tcp.open(&mut bench);
    bench.take(&tcp.send(Originator, 0, b"ab"));
    let (notes, over) = bench.only();
    assert_eq!((notes.bytes(Originator).len(), over.packets, over.missed), (2, [5, 2], [0, 0]));
}

/// TCP Fast Open, RFC 7413.
#[test]
fn payload_on_a_syn_counts_as_far_as_it_is_acknowledged() {
    let syn = |bench: &mut Bench, tcp: &Tcp| bench.take(&tcp.at(Originator, -1, 0, SYN, b"early"));
    for taken in 0..=5 {
        let (mut bench, tcp) = (Bench::new(), Tcp::default());
        syn(&mut bench, &tcp);
        syn(&mut bench, &tcp);
        bench.take(&tcp.at(Responder, -1, taken, SYN | ACK, b"answer"));
        bench.take(&tcp.at(Originator, taken, 6, ACK, &b"earlylater"[taken as usize..]));
        let (notes, over) = bench.only();
        assert_eq!(notes.bytes(Originator), b"earlylater".map(Some), "{taken}");
        let first = if taken == 0 { data(Responder, "answer") } else { data(Originator, &b"early"[..taken as usize]) };
        assert_eq!((&notes.events[0], over.missed), (&first, [0, 0]), "{taken}");
    }
    // Where the SYN-ACK was not captured, what comes first shows it.
    for from in [Originator, Responder] {
        let (mut bench, tcp) = (Bench::new(), Tcp::default());
        syn(&mut bench, &tcp);
        let packet = if from == Originator { tcp.send(from, 5, b"later") } else { tcp.at(from, 0, 5, ACK, b"answer") };
        bench.take(&packet);
        assert_eq!(bench.only().0.events[..2], [data(Originator, "early"), data(from, packet.payload)]);
    }
    // One that is not taken is sent again, and may be another.
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    syn(&mut bench, &tcp);
    bench.take(&tcp.send(Originator, 0, b"other"));
    assert_eq!(bench.only().0.bytes(Originator), b"other".map(Some));
}

#[test]
fn who_wants_no_more_is_only_counted() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.log.enough = Some(2);
    tcp.open(&mut bench);
    bench.take(&tcp.send(Originator, 6, b"gh"));
    bench.take(&tcp.send(Originator, 0, b"ab"));
    bench.take(&tcp.send(Originator, 2, b"cdef"));
    assert_eq!(bench.table.held_bytes(), 0);
    bench.take(&tcp.send(Originator, 20, b"xy"));
    bench.take(&tcp.at(Originator, 22, 0, FIN | ACK, b""));
    bench.take(&tcp.at(Responder, 0, 23, FIN | ACK, b""));
    assert_eq!((bench.table.counts().finished, bench.table.counts().gaps), (1, 0));
    let (notes, over) = bench.only();
    assert_eq!(notes.side(Originator), [data(Originator, "ab"), data(Originator, "cdef"), Event::End(Originator)]);
    assert_eq!((over.missed, over.packets), ([0, 0], [7, 2]));
}

#[test]
fn one_side_may_tell_that_nothing_is_wanted_of_the_other() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.log.enough = Some(1);
    tcp.open(&mut bench);
    bench.take(&tcp.send(Responder, 6, b"held back"));
    assert!(bench.table.held_bytes() > 0);
    bench.take(&tcp.send(Originator, 0, b"ab"));
    assert_eq!(bench.table.held_bytes(), 0);
    bench.take(&tcp.send(Responder, 0, b"answer"));
    let (notes, _) = bench.only();
    assert_eq!(notes.side(Responder), [Event::End(Responder)]);
}

#[test]
fn who_gets_no_application_is_only_counted() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    bench.log.refuse = true;
    tcp.open(&mut bench);
    for at in [5, 0, 9] {
        bench.take(&tcp.send(Originator, at, b"abc"));
    }
    bench.take(&tcp.at(Originator, 12, 0, RST, b""));
    let counts = *bench.table.counts();
    assert_eq!((bench.log.begun, bench.table.held_bytes(), counts.reset, counts.gaps), (1, 0, 1, 0));
    bench.table.finish(&mut bench.log);
    assert_eq!((bench.log.over[0].packets, bench.log.over[0].reason), ([6, 1], Reason::Reset));
}

#[test]
fn the_observer_hears_of_each_packet_that_told_an_application_something() {
    let (mut bench, tcp) = opened();
    for (at, progress) in [(0, 1), (0, 1), (4, 1), (2, 2)] {
        bench.take(&tcp.send(Originator, at, b"ab"));
        assert_eq!(bench.log.progress, progress);
    }
    bench.take(&tcp.at(Originator, 6, 0, FIN | ACK, b""));
    assert_eq!(bench.log.progress, 3);
    bench.take(&tcp.at(Responder, 0, 7, ACK, b""));
    assert_eq!(bench.log.progress, 3);
}

#[test]
fn the_end_of_the_capture_hands_over_what_is_left() {
    let (mut bench, tcp) = opened();
    bench.take(&tcp.send(Responder, 2, b"cd"));
    bench.take(&tcp.send(Responder, 5, b"f"));
    // 3 bytes behind all that was seen are acknowledged on the other side.
    bench.take(&tcp.at(Responder, 6, 3, ACK, b""));
    let (notes, over) = bench.only();
    let text: String = notes.bytes(Responder).into_iter().map(|byte| byte.map_or('.', char::from)).collect();
    assert_eq!(text, "..cd.f");
    assert_eq!(notes.side(Originator), [Event::Gap(Originator, 3), Event::End(Originator)]);
    assert_eq!(over.missed, [3, 3]);
}

#[test]
fn what_nobody_closed_ends_with_its_last_packet() {
    let quiet = Tcp { time_ns: 7 * SECOND, ..Tcp::default() };
    let other = Tcp { ends: [(mapped(77), 40_000), (mapped(0x0a00_0002), 80)], ..Tcp::default() };
    for by_time in [false, true] {
        let mut bench = Bench::new();
        quiet.open(&mut bench);
        // A hole, unless it would be over before the conversation is.
        let hole = if by_time { 0 } else { 2 };
        bench.take(&quiet.send(Responder, hole, b"cd"));
        // Others bring the time on, by a packet and by a mark.
        other.open(&mut bench);
        bench.take(&other.send(Originator, 0, b"x"));
        if by_time {
            bench.expire(1_000_000 * SECOND);
        } else {
            bench.table.finish(&mut bench.log);
        }
        let over = bench.log.over.iter().find(|over| over.times.0 == quiet.time_ns).expect("it is over");
        let notes = over.notes.as_ref().expect("an application");
        assert_eq!(notes.bytes(Responder).len(), hole as usize + 2);
        assert_eq!(notes.late_ns.len(), if by_time { 2 } else { 3 });
        assert!(notes.late_ns.iter().all(|&time_ns| time_ns == quiet.time_ns), "{:?}: {notes:?}", over.reason);
    }
}

#[test]
fn sides_are_named() {
    assert_eq!(Side::Originator.other(), Side::Responder);
    assert_eq!(Side::BOTH.map(Side::index), [0, 1]);
}
