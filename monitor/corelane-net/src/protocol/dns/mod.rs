//! DNS over UDP and TCP: reads questions and answers, and pairs queries with responses.
//!
//! 1. Over UDP a datagram is a message. Over TCP a message follows its length in two bytes, and is collected for each
//!    side.
//! 2. The header is read first, then the questions, then the answers, each as far as it is whole. So a message that is
//!    cut is reported up to the cut, and [`Message::is_whole`] is false.
//! 3. A query is remembered by id and question until its response comes. At most [`PENDING`] are remembered; the oldest
//!    is forgotten first. A repeated query is the same transaction.
//!
//! A name's compression pointers are followed only backwards, and at most 32 of them. Types and classes that are not
//! assigned are accepted: tunnels use them.
//!
//! # Bounds
//!
//! The first [`QUESTIONS`] questions and [`ANSWERS`] answers of a message are read, and the first [`TEXT`] bytes of a
//! text. All texts together have at most [`TEXT`] bytes and four for each byte of the message; what would be more
//! counts as cut. A side over TCP keeps one message, so at most 64 KiB.

mod kind;
mod message;
mod parser;
mod rule;
mod wire;

pub use message::{Data, Message, Question, Record};
pub(super) use parser::Dns;
pub use parser::{ANSWERS, MOST, PENDING, QUESTIONS, TEXT};
pub(super) use rule::{message, message_over_tcp};
