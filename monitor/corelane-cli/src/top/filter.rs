//! The filter: the language of the page. Words that all have to fit; `ip:`, `port:`, `sni:` and `proto:` say what of a
//! row they look at, other words look at all of it.

use corelane_monitor::Network;
use std::net::IpAddr;

/// What the words of a filter look at.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) hosts: Vec<IpAddr>,
    pub(super) ports: Vec<u16>,
    /// Names, in lower case.
    pub(super) names: Vec<String>,
    /// Protocols and kinds, in lower case.
    pub(super) protocols: Vec<String>,
    /// What else the row says, in lower case.
    pub(super) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Network(Network),
    /// The beginning of an address.
    Address(String),
    Port(String),
    Name(String),
    Protocol(String),
    Any(String),
}

/// Words that all have to fit; none fit everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    text: String,
    words: Vec<Word>,
    /// What is written like a key, and is none.
    unknown: Option<String>,
}

impl Filter {
    pub(super) fn of(text: &str) -> Self {
        let mut unknown = None;
        let words = text.split_whitespace().filter_map(|word| {
            let word = word.to_lowercase();
            let (kind, rest) = word.split_once(':').unwrap_or(("", &word));
            if rest.is_empty() && matches!(kind, "ip" | "port" | "sni" | "proto") {
                // It is being written.
                return None;
            }
            Some(match kind {
                "ip" => rest.parse().map(Word::Network).unwrap_or_else(|_| Word::Address(beginning(rest))),
                "port" => Word::Port(rest.to_owned()),
                "sni" => Word::Name(rest.to_owned()),
                "proto" => Word::Protocol(rest.to_owned()),
                _ => {
                    if is_like_key(kind) && !rest.is_empty() {
                        unknown = Some(kind.to_owned());
                    }
                    Word::Any(word)
                }
            })
        });
        let words = words.collect();
        Filter { text: text.to_owned(), words, unknown }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A key that there is not.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether all words fit. What they look at is made only if there are words.
    pub(super) fn fits(&self, subject: impl FnOnce() -> Subject) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let subject = subject();
        self.words.iter().all(|word| subject.has(word))
    }
}

/// Letters, but no group of an IPv6 address.
fn is_like_key(text: &str) -> bool {
    let is_group = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    !is_group && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Half an address fits where it ends with a separator, or with `*`.
fn beginning(text: &str) -> String {
    match text.strip_suffix('*') {
        Some(start) => start.to_owned(),
        None if text.ends_with(['.', ':']) => text.to_owned(),
        // No address begins with this.
        None => format!("{text} "),
    }
}

impl Subject {
    fn has(&self, word: &Word) -> bool {
        match word {
            Word::Network(network) => self.hosts.iter().any(|&host| network.contains(host)),
            Word::Address(start) => self.hosts.iter().any(|host| host.to_string().starts_with(start)),
            Word::Port(number) => self.ports.iter().any(|port| port.to_string() == *number),
            Word::Name(part) => self.names.iter().any(|name| name.contains(part)),
            Word::Protocol(name) => self.protocols.iter().any(|own| own == name),
            Word::Any(part) => {
                self.names.iter().chain(&self.protocols).chain([&self.text]).any(|text| text.contains(part))
                    || self.hosts.iter().any(|host| host.to_string().contains(part))
                    || self.ports.iter().any(|port| port.to_string() == *part)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(filter: &str) -> bool {
        let subject = || Subject {
            hosts: vec!["10.1.2.3".parse().unwrap(), "2001:db8::7".parse().unwrap()],
            ports: vec![443, 53],
            names: vec!["www.example.com".to_owned()],
            protocols: vec!["tls".to_owned(), "no payload".to_owned()],
            text: "21+ failed".to_owned(),
        };
        Filter::of(filter).fits(subject)
    }

    #[test]
    fn every_word_has_to_fit() {
        for yes in [
            "",
            "ip:",
            "ip:10.1.2.3",
            "ip:10.0.0.0/8",
            "ip:2001:db8::/32",
            "ip:10.1.",
            "ip:10*",
            "ip:2001:",
            "port:443",
            "sni:EXAMPLE",
            "proto:TLS",
            "example",
            "1.2.3",
            "443",
            "FAILED",
            "ip:10.1.2.3 port:53 proto:tls sni:www. com",
        ] {
            assert!(fits(yes), "{yes}");
        }
        for no in [
            "ip:10.1.2.4",
            "ip:10.2.0.0/16",
            "ip:10.1",
            "ip:1.2.3.",
            "port:44",
            "port:www",
            "sni:10.1",
            "proto:tl",
            "proto:failed",
            "sni:failed",
            "44",
            "nothing",
            "port:443 proto:dns",
        ] {
            assert!(!fits(no), "{no}");
        }
    }

    #[test]
    fn a_key_that_there_is_not_is_told_from_words_and_addresses() {
        for (filter, unknown) in [
            ("foo:bar", Some("foo")),
            ("port:80 Host:www", Some("host")),
            ("fade:1 added:1", Some("added")),
            ("foo:", None),
            (":80", None),
            ("ip:10.1. sni:x proto:tls", None),
            ("2001:db8::7 fe80:: dead:beef", None),
            ("10.0.0.1:443", None),
            ("", None),
        ] {
            assert_eq!(Filter::of(filter).unknown(), unknown, "{filter}");
        }
    }
}
