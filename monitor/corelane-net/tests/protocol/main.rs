//! Protocols, from outside: by hand-made bytes, by generated ones, and by captures whose truth is known.

mod captures;
#[path = "../support/captures_folder.rs"]
mod captures_folder;
mod dns;
mod dtls;
mod http;
mod identify;
mod list;
mod preface;
mod properties;
mod quic;
mod ssh;
mod starttls;
mod support;
mod tls;
