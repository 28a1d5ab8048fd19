//! DNS over UDP and TCP: questions, answers, and which answer belongs to which question.
//!
//! 1. Over UDP a datagram is a message. Over TCP a message follows its length in two bytes; it is put together per
//!    side.
//! 2. The header is read first, then the questions, then the answers, each as far as it is whole. So of a message that
//!    is cut what came before the cut is reported, and [`Message::is_whole`] says that something is missing.
//! 3. A query is remembered by id and question until its response comes, at most [`PENDING`] of them; the oldest is
//!    forgotten first. A query that is sent again is the same transaction.
//!
//! The crate `domain` reads names and records. It follows a compression pointer only backwards and at most 255 of them
//! a name, takes types and classes that are not assigned yet, and allocates nothing.
//!
//! # Bounds
//!
//! Of a message the first [`QUESTIONS`] questions and the first [`ANSWERS`] answers are read, and of a text the first
//! [`TEXT`] bytes. A side over TCP keeps one message, so at most 64 KiB.

mod message;
mod parser;

pub use message::{Data, Message, Question, Record};
pub use parser::{ANSWERS, MOST, PENDING, QUESTIONS, TEXT};
pub(super) use parser::{Dns, Looks, SHORTEST, looks_like};
