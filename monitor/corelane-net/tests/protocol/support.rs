//! Conversations as a list of what happens.

use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::http::Exchange;
use corelane_net::protocol::{Carrier, Event, Identified, Session};

pub(crate) const C: Side = Side::Originator;
pub(crate) const S: Side = Side::Responder;

/// What happens on a side.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Data(Vec<u8>),
    Gap(u64),
    End,
}

pub(crate) fn data(bytes: impl AsRef<[u8]>) -> Step {
    Step::Data(bytes.as_ref().to_vec())
}

/// Runs the steps, whole and in single bytes, and ends both sides. Step `n` happens at the time `n`.
pub(crate) fn run(carrier: Carrier, steps: &[(Side, Step)]) -> Vec<Event> {
    let whole = run_in_pieces(carrier, steps, usize::MAX);
    assert_eq!(whole, run_in_pieces(carrier, steps, 1), "the events depend on the pieces");
    whole
}

pub(crate) fn run_in_pieces(carrier: Carrier, steps: &[(Side, Step)], piece: usize) -> Vec<Event> {
    let mut session = Session::new(carrier);
    let mut events = Vec::new();
    for (time_ns, (side, step)) in steps.iter().enumerate() {
        let time_ns = time_ns as u64;
        match step {
            Step::Data(bytes) if carrier == Carrier::Datagrams => session.data(*side, time_ns, bytes, &mut events),
            Step::Data(bytes) => {
                for bytes in bytes.chunks(piece) {
                    session.data(*side, time_ns, bytes, &mut events);
                }
            }
            Step::Gap(missing) => session.gap(*side, time_ns, *missing, &mut events),
            Step::End => session.end(*side, time_ns, &mut events),
        }
    }
    for side in Side::BOTH {
        let is_open = !steps.iter().any(|(ended, step)| *ended == side && matches!(step, Step::End));
        if is_open {
            session.end(side, steps.len() as u64, &mut events);
        }
    }
    events
}

/// What the conversation was found to be, at first.
pub(crate) fn identified(carrier: Carrier, steps: &[(Side, Step)]) -> Option<Identified> {
    run(carrier, steps).into_iter().find_map(|event| match event {
        Event::Identified(identified) => Some(identified),
        _ => None,
    })
}

/// The HTTP exchanges of a connection.
pub(crate) fn exchanges(steps: &[(Side, Step)]) -> Vec<Exchange> {
    let events = run(Carrier::Stream, steps).into_iter();
    events
        .filter_map(|event| match event {
            Event::Http(exchange) => Some(*exchange),
            _ => None,
        })
        .collect()
}

/// An exchange in short: the request's method, URL and body length, the response's status and body length. An
/// incomplete body has a `~`.
pub(crate) fn short(exchange: &Exchange) -> String {
    let body = |body: corelane_net::protocol::http::Body| {
        let missing = if body.missing > 0 { format!("-{}", body.missing) } else { String::new() };
        format!("{}{missing}{}", body.bytes, if body.is_whole { "" } else { "~" })
    };
    let request = exchange
        .request
        .as_ref()
        .map_or("-".to_owned(), |request| format!("{} {} {}", request.method, request.url, body(request.body)));
    let response = exchange
        .response
        .as_ref()
        .map_or("-".to_owned(), |response| format!("{} {}", response.status, body(response.body)));
    format!("{request} > {response}")
}

pub(crate) fn shorts(steps: &[(Side, Step)]) -> Vec<String> {
    exchanges(steps).iter().map(short).collect()
}
