//! The addresses of the hosts.
//!
//! All addresses are in ranges that are assigned to no network: 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 198.18.0.0/15
//! and 2001:db8::/32. Each part of the traffic numbers its addresses by a bijection, so two numbers never share an
//! address. No address belongs to two parts, so no part's packets can count for another.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::random::{Random, mix};

/// The upper half of every IPv6 address here.
const DOCUMENTATION: u128 = 0x2001_0db8 << 96;

/// An address of either family in 64 bits. An IPv4 address is itself. An IPv6 address is its third to sixth byte pairs,
/// without the zeros between the network's number and the host's.
pub(super) type Address = u64;

/// The address as 128 bits, for a packet.
#[inline]
pub(super) fn wide(address: Address) -> u128 {
    DOCUMENTATION | u128::from(address >> 32) << 64 | u128::from(address as u32)
}

/// The address in its usual notation.
pub(super) fn to_ip(v6: bool, address: Address) -> IpAddr {
    if v6 { Ipv6Addr::from(wide(address)).into() } else { Ipv4Addr::from(address as u32).into() }
}

/// The address plan of a capture. The seed decides the address of each number.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    key: u64,
    clients: u64,
    servers: u64,
}

impl Plan {
    pub(super) fn new(hosts: u32, random: &mut Random) -> Self {
        let servers = u64::from(hosts / 2);
        Self { key: random.next(), clients: u64::from(hosts) - servers, servers }
    }

    pub(super) fn clients(&self) -> u64 {
        self.clients
    }

    pub(super) fn servers(&self) -> u64 {
        self.servers
    }

    #[inline]
    pub(super) fn client(&self, v6: bool, number: u64) -> Address {
        if v6 { self.subnets(0xc, number) } else { 0x0a00_0000 | self.shuffle(number) & 0x00ff_ffff }
    }

    #[inline]
    pub(super) fn server(&self, v6: bool, number: u64) -> Address {
        if v6 { self.subnets(0x5, number) } else { 0x6440_0000 | self.shuffle(number) & 0x003f_ffff }
    }

    pub(super) fn scanner(&self, v6: bool, number: u64) -> Address {
        if v6 { self.subnets(0xbad, number) } else { 0xac10_0000 | self.shuffle(number) & 0x000f_ffff }
    }

    /// A place in the network that scanners sweep. The network is a row of 65,536 addresses, and larger places wrap
    /// around.
    pub(super) fn target(&self, v6: bool, place: u64) -> Address {
        if v6 { 0x000f << 48 | (self.key & 0xffff) << 32 | place & 0xffff } else { 0xc612_0000 | place & 0xffff }
    }

    /// A place where no host is.
    pub(super) fn nowhere(&self, v6: bool, place: u64) -> Address {
        if v6 { 0xdead << 48 | place & 0xffff } else { 0xc613_0000 | place & 0xffff }
    }

    /// A number for this host and `salt` that stays the same during the capture.
    #[inline]
    pub(super) fn trait_of(&self, number: u64, salt: u64) -> u64 {
        mix(self.key ^ number << 8 ^ salt)
    }

    fn subnets(&self, part: u64, number: u64) -> Address {
        part << 48 | (self.trait_of(number, 0xff) & 0xffff) << 32 | self.shuffle(number) & 0xffff_ffff
    }

    /// A number whose low bits, however few are taken, are a bijection of those of `number`.
    #[inline]
    fn shuffle(&self, number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_parts_or_numbers_share_an_address() {
        let plan = Plan::new(2, &mut Random::new(7));
        for v6 in [false, true] {
            let mut seen = HashSet::new();
            for number in 0..60_000 {
                let all = [
                    plan.client(v6, number),
                    plan.server(v6, number),
                    plan.scanner(v6, number),
                    plan.target(v6, number),
                    plan.nowhere(v6, number),
                ];
                for address in all {
                    assert!(seen.insert(to_ip(v6, address)), "{number}");
                }
            }
        }
    }

    #[test]
    fn addresses_are_of_the_ranges_that_belong_to_nobody() {
        let plan = Plan::new(2, &mut Random::new(7));
        assert!(to_ip(false, plan.client(false, 77)).to_string().starts_with("10."));
        assert!(to_ip(false, plan.server(false, 77)).to_string().starts_with("100."));
        assert!(to_ip(false, plan.scanner(false, 77)).to_string().starts_with("172."));
        assert_eq!(to_ip(false, plan.target(false, 0x0102)).to_string(), "198.18.1.2");
        assert_eq!(to_ip(false, plan.nowhere(false, 0x0102)).to_string(), "198.19.1.2");
        assert!(to_ip(true, plan.client(true, 77)).to_string().starts_with("2001:db8:c:"));
        assert_eq!(to_ip(true, plan.nowhere(true, 0x0102)).to_string(), "2001:db8:dead::102");
    }
}
