//! Networks: an address and the number of its bits that count.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// All addresses of one family that begin with the same bits. Written `10.0.0.0/8`, `2001:db8::/32`, or as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address, with zeros in the bits that do not count.
    address: IpAddr,
    prefix: u8,
}

/// `address` without the bits behind the first `prefix`.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl Network {
    /// Whether the address is in this network. An IPv4 address is never in an IPv6 network.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Network {
    type Err = String;

    /// Parses a network. The bits that do not count may be anything: 192.168.7.1/24 means the network of that host.
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let wrong = |_| format!("'{address}' is not an IP address; give one such as 10.0.0.0/8 or 2001:db8::1");
        let address: IpAddr = address.parse().map_err(wrong)?;
        let all = bits(address);
        let prefix = match prefix {
            None => all,
            Some(prefix) => match prefix.parse() {
                Ok(bits) if bits <= all && prefix.bytes().all(|digit| digit.is_ascii_digit()) => bits,
                _ => return Err(format!("'{prefix}' is not a prefix length; give 0 to {all}")),
            },
        };
        Ok(Network { address: masked(address, prefix), prefix })
    }
}

/// Attempts and probes that are ignored: they count for no failure and no scan. Packets, bytes and flows are counted
/// all the same. Written `from=10.0.0.5,to=10.9.0.0/16,port=9100`, with any of the three, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Those from here alone.
    pub source: Option<Network>,
    /// Those to there alone.
    pub target: Option<Network>,
    /// Those to this port alone.
    pub port: Option<u16>,
}

impl Ignored {
    /// All from a network.
    pub fn from(source: Network) -> Self {
        Ignored { source: Some(source), ..Ignored::default() }
    }

    /// All to a network.
    pub fn to(target: Network) -> Self {
        Ignored { target: Some(target), ..Ignored::default() }
    }

    pub(crate) fn has(&self, source: IpAddr, target: IpAddr, port: u16) -> bool {
        self.source.is_none_or(|network| network.contains(source))
            && self.target.is_none_or(|network| network.contains(target))
            && self.port.is_none_or(|of_rule| of_rule == port)
    }
}

impl FromStr for Ignored {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give some of from=NETWORK, to=NETWORK and port=NUMBER, with commas between them";
        let mut ignored = Ignored::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is no rule; {FORM}"))?;
            let is_twice = match name {
                "from" => ignored.source.replace(value.parse()?).is_some(),
                "to" => ignored.target.replace(value.parse()?).is_some(),
                "port" => {
                    let port = value.parse().map_err(|_| format!("'{value}' is not a port; give 0 to 65535"))?;
                    ignored.port.replace(port).is_some()
                }
                _ => return Err(format!("'{name}' is not known; {FORM}")),
            };
            if is_twice {
                return Err(format!("'{name}' is there twice; repeat the option instead"));
            }
        }
        Ok(ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn networks_are_read_and_written() {
        for (text, written) in [
            ("10.0.0.1", "10.0.0.1/32"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.168.7.255/25", "192.168.7.128/25"),
            ("::1", "::1/128"),
            ("2001:db8:ffff::/33", "2001:db8:8000::/33"),
            ("ff02::1/0", "::/0"),
        ] {
            assert_eq!(network(text).to_string(), written);
            assert_eq!(network(written), network(text));
        }
        for (wrong, part) in [
            ("", "'' is not an IP address"),
            ("10.0.0", "'10.0.0' is not an IP address"),
            ("10.0.0.1/33", "0 to 32"),
            ("::1/129", "0 to 128"),
            ("10.0.0.1/", "'' is not a prefix length"),
            ("10.0.0.1/+8", "'+8'"),
            ("10.0.0.1/8/8", "'8/8'"),
            ("10.0.0.1/255.0.0.0", "'255.0.0.0'"),
            ("example.org", "'example.org'"),
            (" 10.0.0.1", "' 10.0.0.1'"),
        ] {
            let error = wrong.parse::<Network>().expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_is_ignored_is_read() {
        let (source, target) = (Some(network("10.0.0.5")), Some(network("10.9.0.0/16")));
        for (text, expected) in [
            ("from=10.0.0.5", Ignored { source, ..Ignored::default() }),
            ("port=161", Ignored { port: Some(161), ..Ignored::default() }),
            ("port=9100,from=10.0.0.5", Ignored { source, port: Some(9100), ..Ignored::default() }),
            ("to=10.9.1.1/16,port=0,from=10.0.0.5", Ignored { source, target, port: Some(0) }),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for (wrong, part) in [
            ("", "'' is no rule"),
            ("10.0.0.5", "'10.0.0.5' is no rule"),
            ("source=10.0.0.5", "'source' is not known"),
            ("from=10.0.0", "'10.0.0' is not an IP address"),
            ("port=65536", "'65536' is not a port"),
            ("port=1,", "'' is no rule"),
            ("port=1,port=2", "'port' is there twice"),
        ] {
            let error = wrong.parse::<Ignored>().expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix_and_family() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (of, first, last, before, behind) in [
            ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("10.0.0.6/31", "10.0.0.6", "10.0.0.7", "10.0.0.5", "10.0.0.8"),
            ("10.0.0.6", "10.0.0.6", "10.0.0.6", "10.0.0.5", "10.0.0.7"),
            ("2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff::", "2001:db9::"),
        ] {
            let network = network(of);
            assert!(network.contains(ip(first)) && network.contains(ip(last)), "{of}");
            assert!(!network.contains(ip(before)) && !network.contains(ip(behind)), "{of}");
        }
        assert!(network("0.0.0.0/0").contains(ip("255.1.2.3")) && !network("0.0.0.0/0").contains(ip("::1")));
        assert!(network("::/0").contains(ip("ff::1")) && !network("::/0").contains(ip("10.0.0.1")));
    }
}
