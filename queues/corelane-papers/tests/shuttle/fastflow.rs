//! FastFlow's queue.

use crate::{Item, draw, explore, many, one_of, thread};
use corelane_papers::fastflow;

/// Pointers through buffers that are used again.
#[test]
fn pointers_come_once_and_in_order() {
    explore(|| {
        let (mut producer, mut consumer) = fastflow::channel::<Item>(one_of(&[1, 2, 5, 64]));
        let (items, popped) = (many(draw(1..200)), many(draw(0..200)));
        let pusher = thread::spawn(move || {
            for id in 0..items {
                assert!(producer.push(Box::new(Item::new(id))).is_ok());
                if draw(0..20) == 0 {
                    thread::yield_now();
                }
            }
        });
        for id in 0..items.min(popped) {
            loop {
                match consumer.pop() {
                    Some(item) => break assert_eq!(item.id, id),
                    None => thread::yield_now(),
                }
            }
        }
        pusher.join().unwrap();
    });
}
