//! Whether a kind of queue has a bound, as its type says.

/// A kind of queue that never holds more than its `capacity`: a push waits, or is refused, until there is room.
///
/// These functions make a queue of any design with a capacity, and ask for it:
/// [`spsc::channel_with`](crate::spsc::channel_with), [`mpmc::queue_with`](crate::mpmc::queue_with),
/// [`mpmc::channel_with`](crate::mpmc::channel_with),
/// [`dispatch::Builder::build_with`](crate::dispatch::Builder::build_with) and
/// [`dispatch::Collector::with`](crate::dispatch::Collector::with). So code that is generic over the design cannot lose
/// its bound to a design that has none:
///
/// ```
/// use corelane::spsc::{self, Design, Lane, NoStats};
/// use corelane::wait::Adaptive;
/// use corelane::Bounded;
///
/// fn make<D: Design<u32> + Bounded>() -> (spsc::Producer<u32, D>, spsc::Consumer<u32, D>) {
///     spsc::channel_with::<u32, D, Adaptive, NoStats>(64, spsc::Options::new().tuning(D::Tuning::default())).unwrap()
/// }
///
/// assert_eq!(make::<Lane>().0.capacity(), 64);
/// ```
///
/// ```compile_fail,E0277
/// # use corelane::spsc::{self, Linked, NoStats, Options, linked::Tuning};
/// # use corelane::wait::Adaptive;
/// spsc::channel_with::<u32, Linked, Adaptive, NoStats>(64, Options::new().tuning(Tuning::new())).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "a queue of `{Self}` has no bound, so it is not made with a capacity",
    note = "a design without a bound has constructors in its module; a dispatcher has `build_unbounded`"
)]
pub trait Bounded {}

/// A kind of queue that holds as much as there is memory for: a push waits for a pop only where there is no memory for
/// another item.
#[diagnostic::on_unimplemented(message = "a queue of `{Self}` has a bound, and asks for a capacity")]
pub trait Unbounded {}
