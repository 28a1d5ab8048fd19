//! Interfaces that go down, up, away, and come back.

use std::num::NonZeroU16;
use std::time::Duration;

use corelane_net::capture::live::{Live, LiveError, News};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::support::{Sender, drain, inside, ip, ipv4, news, nothing, number, options, pair, read};

#[test]
fn a_link_that_was_down_goes_on() {
    inside("state::a_link_that_was_down_goes_on", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        let sender = Sender::new("a0");
        // The interface itself, and its carrier.
        for (round, interface) in (0..).zip(["b0", "a0"]) {
            ip(&format!("link set {interface} down"));
            assert!(matches!(news(&mut live), News::Down));
            ip(&format!("link set {interface} up"));
            assert!(matches!(news(&mut live), News::Up));
            sender.send(&ipv4(1, 2, 17, round));
            assert_eq!(number(&read(&mut live, 1)[0].data), round);
        }
        assert_eq!(live.statistics().received, 2);
        assert!(live.take_news().is_none());
    });
}

#[test]
fn an_interface_that_gets_another_name_goes_on() {
    inside("state::an_interface_that_gets_another_name_goes_on", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        ip("link set b0 down");
        assert!(matches!(news(&mut live), News::Down));
        ip("link set b0 name c0");
        ip("link set c0 up");
        assert!(matches!(news(&mut live), News::Up));
        Sender::new("a0").send(&ipv4(1, 2, 17, 3));
        assert_eq!(number(&read(&mut live, 1)[0].data), 3);
        assert_eq!(live.interface(), "b0");
    });
}

#[test]
fn an_interface_that_is_down_can_be_opened() {
    inside("state::an_interface_that_is_down_can_be_opened", || {
        pair();
        ip("link set b0 down");
        let mut live = Live::open("b0", &options()).unwrap();
        assert!(matches!(live.take_news(), Some(News::Down)));
        ip("link set b0 up");
        assert!(matches!(news(&mut live), News::Up));
        Sender::new("a0").send(&ipv4(1, 2, 17, 9));
        assert_eq!(number(&read(&mut live, 1)[0].data), 9);
    });
}

#[test]
fn rings_of_an_interface_that_is_down_can_be_opened() {
    inside("state::rings_of_an_interface_that_is_down_can_be_opened", || {
        pair();
        ip("link set b0 down");
        let mut all = Live::open_rings("b0", &options(), NonZeroU16::new(2).unwrap()).unwrap();
        ip("link set b0 up");
        for live in &mut all {
            assert!(matches!(news(live), News::Down));
            assert!(matches!(news(live), News::Up));
        }
        let sender = Sender::new("a0");
        for index in 0..10 {
            sender.send(&ipv4(1, 2 + index, 17, index));
        }
        let counts: Vec<usize> = all.iter_mut().map(|live| drain(live).len()).collect();
        assert_eq!(counts, [5, 5]);
    });
}

#[test]
fn an_interface_that_was_deleted_is_found_again() {
    inside("state::an_interface_that_was_deleted_is_found_again", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        for round in 0..2 {
            let sender = Sender::new("a0");
            sender.send(&ipv4(1, 2, 17, 2 * round));
            assert_eq!(number(&read(&mut live, 1)[0].data), 2 * round);
            // Still in the ring when the interface goes.
            sender.send(&ipv4(1, 2, 17, 2 * round + 1));
            ip("link del a0");
            assert_eq!(number(&read(&mut live, 1)[0].data), 2 * round + 1);
            assert!(matches!(news(&mut live), News::Gone));
            assert!(live.quiet_since().is_some());
            pair();
            assert!(matches!(news(&mut live), News::Back));
        }
        Sender::new("a0").send(&ipv4(1, 2, 17, 8));
        assert_eq!(number(&read(&mut live, 1)[0].data), 8);
        drain(&mut live);
        let counts = live.statistics();
        assert_eq!((counts.received, counts.handed_out, counts.dropped), (5, 5, 0));
    });
}

/// While the interface is gone nothing can come, so a stop is complete at once.
#[test]
fn a_capture_without_an_interface_can_be_stopped() {
    inside("state::a_capture_without_an_interface_can_be_stopped", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        ip("link del b0");
        assert!(matches!(news(&mut live), News::Gone));
        assert!(drain(&mut live).is_empty());
    });
}

#[test]
fn rings_of_a_deleted_interface_come_back_together() {
    inside("state::rings_of_a_deleted_interface_come_back_together", || {
        pair();
        let mut all = Live::open_rings("b0", &options(), NonZeroU16::new(2).unwrap()).unwrap();
        ip("link del a0");
        let mut all = all.iter_mut();
        let (first, second) = (all.next().unwrap(), all.next().unwrap());
        assert!(matches!(news(first), News::Gone));
        pair();
        // The second one is still in the old group, so the first cannot begin a new one.
        nothing(first, Duration::from_millis(2500));
        assert!(matches!(news(second), News::Gone));
        assert!(matches!(news(first), News::Back));
        nothing(first, Duration::ZERO);
        // Half of these belong to the second one, so none comes before that is back too.
        let sender = Sender::new("a0");
        (0..10).for_each(|index| sender.send(&ipv4(1, 2 + index, 17, index)));
        nothing(first, Duration::from_millis(500));
        assert!(matches!(news(second), News::Back));
        nothing(first, Duration::ZERO);
        nothing(second, Duration::ZERO);
        for index in 0..100 {
            sender.send(&ipv4(1, 2 + index, 17, index));
        }
        let counts: Vec<usize> = [first, second].into_iter().map(|live| drain(live).len()).collect();
        assert_eq!(counts, [50, 50]);
    });
}

/// Takes the right to open packet sockets from this thread, or gives it back.
pub(crate) fn permit(capture: bool) {
    let mut sets = capabilities(None).unwrap();
    sets.effective.set(CapabilitySet::NET_RAW, capture);
    set_capabilities(None, sets).unwrap();
}

#[test]
fn an_interface_that_is_refused_is_tried_again() {
    inside("state::an_interface_that_is_refused_is_tried_again", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        ip("link del b0");
        assert!(matches!(news(&mut live), News::Gone));
        permit(false);
        pair();
        match news(&mut live) {
            News::Refused(LiveError::NotPermitted { .. }) => {}
            news => panic!("{news}"),
        }
        // Not said again, though tried again.
        nothing(&mut live, Duration::from_millis(2500));
        permit(true);
        assert!(matches!(news(&mut live), News::Back));
        Sender::new("a0").send(&ipv4(1, 2, 17, 4));
        assert_eq!(number(&read(&mut live, 1)[0].data), 4);
    });
}
