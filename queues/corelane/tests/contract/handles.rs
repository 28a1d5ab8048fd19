//! What the handles are, and what they say of themselves.

use crate::case::{Case, Silent, queue};
use corelane::spsc::{self, Consumer, Lane, Options, Peeked, Producer, Reserved};
use corelane::wait::Adaptive;
use std::cell::Cell;

macro_rules! lacks {
    ($type:ty: $lacked:path) => {
        const _: fn() = || {
            trait Ambiguous<Marker> {
                fn once() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $lacked> Ambiguous<u8> for T {}
            // Inference has a choice, and fails, if the second implementation applies too.
            let _ = <$type as Ambiguous<_>>::once;
        };
    };
}

macro_rules! handles_of {
    ($name:ident, $design:ident, $flags:tt) => {
        const _: () = {
            const fn is_send<T: Send>() {}
            is_send::<Producer<Cell<u64>, spsc::$design>>();
            is_send::<Consumer<Cell<u64>, spsc::$design>>();
        };
        lacks!(Producer<u64, spsc::$design>: Sync);
        lacks!(Consumer<u64, spsc::$design>: Sync);
        lacks!(Producer<u64, spsc::$design>: Clone);
        lacks!(Consumer<u64, spsc::$design>: Clone);
    };
}
designs!(handles_of);

const _: () = {
    const fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Options<(), Adaptive>>();
};
lacks!(Reserved<'static, u64, Lane>: Clone);
lacks!(Peeked<'static, u64, Lane>: Clone);

pub(crate) fn debug_needs_nothing_of_the_item<C: Case>() {
    let (mut tx, mut rx) = queue::<Silent, C>(9);
    assert!(tx.try_push(Silent(Cell::new(123_456))).is_ok());
    let texts = [format!("{tx:?}"), format!("{rx:?}")];
    for (text, name) in texts.iter().zip(["Producer", "Consumer"]) {
        assert!(text.starts_with(name), "{text}");
        assert!(text.contains(&format!("capacity: {}", tx.capacity())) && text.contains("closed: false"), "{text}");
    }
    assert!(format!("{:?}", tx.try_reserve().unwrap()).starts_with("Reserved"));
    let peeked = format!("{:?}", rx.try_peek().unwrap());
    assert!(peeked.starts_with("Peeked") && !peeked.contains("123456"), "{peeked}");
    drop(rx);
    let refused = tx.try_push(Silent(Cell::new(0))).unwrap_err();
    assert_eq!(format!("{refused:?}"), "Closed(..)");
    assert!(format!("{tx:?}").contains("closed: true"));
}
