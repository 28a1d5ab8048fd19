//! A public function that panics by contract names its caller's line, not its own.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

use corelane::handoff::{Fairness, SynchronousQueue, WaitLimit};
use corelane::mpmc::{self, lanes};
use corelane::spsc::{self, Options, stream};
use corelane::wait::Select;
use corelane::{dispatch, spsc::mcring};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// Of the last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
    static WRONG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn check(name: &str, call: impl FnOnce()) {
    PLACE.take();
    let place = match panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(()) => "no place".to_owned(),
        Err(_) => PLACE.take(),
    };
    if !place.ends_with("callers.rs") {
        WRONG.with_borrow_mut(|wrong| wrong.push(format!("{name} panics at {place}")));
    }
}

#[test]
fn who_breaks_a_contract_is_named() {
    panic::set_hook(Box::new(|info| {
        PLACE.set(info.location().map(|place| place.file().to_owned()).unwrap_or_default());
    }));
    macro_rules! checks {
        ($($name:literal: $call:expr;)+) => {
            $(check($name, || {
                let _ = $call;
            });)+
        };
    }
    checks! {
        "spsc::channel": spsc::channel::<u8>(0);
        "spsc::lamport::channel": spsc::lamport::channel::<u8>(0);
        "mpmc::channel": mpmc::channel::<u8>(0);
        "mpmc::queue": mpmc::queue::<u8>(0);
        "mpmc::scq::channel": mpmc::scq::channel::<u8>(0);
        "lanes::channel": lanes::channel::<u8>(0);
        "dispatch::channel": dispatch::channel::<u8>(1, 0);
    }
    // Ends that wait for more than there can be.
    let (mut tx, mut rx) = mcring::channel::<u8>(8);
    checks! {
        "wait_for_room": tx.wait_for_room(9);
        "try_reserve_slice": tx.try_reserve_slice(0).is_ok();
        "reserve_slice": tx.reserve_slice(0).is_ok();
        // SAFETY: it panics.
        "ReservedSlice::commit": unsafe { tx.reserve_slice(1).unwrap().commit(9) };
    }
    tx.push(1).unwrap();
    check("PeekedSlice::release", || rx.try_peek_slice().unwrap().release(9));
    let tuning = stream::Tuning::new().limit(64);
    let (mut stream_tx, _stream_rx) = stream::channel_with(Options::new().tuning(tuning)).unwrap();
    // SAFETY: it panics.
    check("stream::Reserved::commit", || assert!(unsafe { stream_tx.reserve(1).unwrap().commit(9) }.is_ok()));
    let (mut lane_tx, _lane_rx) = lanes::channel::<u8>(8);
    checks! {
        "Select::add_for": Select::new().add_for(&mut tx, 9);
        "Select::add_for, lanes": Select::new().add_for(&mut lane_tx, 9);
        "Select::add_for, stream": Select::new().add_for(&mut stream_tx, 100);
    }
    let mut select = Select::new();
    let key = select.add(&mut tx);
    select.remove(key);
    checks! {
        "Select::index": select[key].len();
        "Select::index_mut": select[key].close();
    }
    let queue = SynchronousQueue::<u8>::new(Fairness::Fair);
    let limit = WaitLimit::new();
    queue.close();
    macro_rules! followed_up {
        ($reserve:expr) => {{
            let mut ticket = $reserve;
            assert!(ticket.try_followup().is_some());
            ticket
        }};
    }
    checks! {
        "TakeTicket::try_followup": followed_up!(queue.reserve_take()).try_followup().is_some();
        "TakeTicket::wait": followed_up!(queue.reserve_take()).wait().is_ok();
        "TakeTicket::wait_with": followed_up!(queue.reserve_take()).wait_with(&limit).is_ok();
        "PutTicket::try_followup": followed_up!(queue.reserve_put(1)).try_followup().is_some();
        "PutTicket::wait": followed_up!(queue.reserve_put(1)).wait().is_ok();
        "PutTicket::wait_with": followed_up!(queue.reserve_put(1)).wait_with(&limit).is_ok();
    }
    #[cfg(feature = "async")]
    {
        use futures_util::Sink;
        use std::pin::Pin;

        let (tx, _rx) = spsc::channel::<u8>(1);
        let mut tx = tx.into_async();
        tx.try_push(1).unwrap();
        check("AsyncProducer::start_send", || Pin::new(&mut tx).start_send(2).unwrap());
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let mut select = Select::new();
            select.add(corelane::wait::Readable::new(std::io::stdin()));
            check("Select::wait_async", || drop(select.wait_async()));
        }
    }
    let _ = panic::take_hook();
    assert_eq!(WRONG.take(), [""; 0]);
}
