//! Types of records and codes of responses, by number and name (IANA's registry of DNS parameters).

pub(super) const A: u16 = 1;
pub(super) const NS: u16 = 2;
pub(super) const CNAME: u16 = 5;
pub(super) const SOA: u16 = 6;
pub(super) const PTR: u16 = 12;
pub(super) const MX: u16 = 15;
pub(super) const TXT: u16 = 16;
pub(super) const AAAA: u16 = 28;
pub(super) const SRV: u16 = 33;
pub(super) const DNAME: u16 = 39;

/// The name of a type, if it has one.
pub(super) fn name(kind: u16) -> Option<&'static str> {
    let found = NAMES.binary_search_by_key(&kind, |&(number, _)| number).ok()?;
    Some(NAMES[found].1)
}

/// The name of the code of a response, if it has one.
pub(super) fn rcode_name(code: u8) -> Option<&'static str> {
    RCODES.get(usize::from(code)).copied()
}

const RCODES: [&str; 11] = [
    "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH",
    "NOTZONE",
];

/// In the order of the numbers.
#[rustfmt::skip]
const NAMES: [(u16, &str); 97] = [
    (1, "A"), (2, "NS"), (3, "MD"), (4, "MF"), (5, "CNAME"), (6, "SOA"), (7, "MB"), (8, "MG"), (9, "MR"),
    (10, "NULL"), (11, "WKS"), (12, "PTR"), (13, "HINFO"), (14, "MINFO"), (15, "MX"), (16, "TXT"), (17, "RP"),
    (18, "AFSDB"), (19, "X25"), (20, "ISDN"), (21, "RT"), (22, "NSAP"), (23, "NSAPPTR"), (24, "SIG"), (25, "KEY"),
    (26, "PX"), (27, "GPOS"), (28, "AAAA"), (29, "LOC"), (30, "NXT"), (31, "EID"), (32, "NIMLOC"), (33, "SRV"),
    (34, "ATMA"), (35, "NAPTR"), (36, "KX"), (37, "CERT"), (38, "A6"), (39, "DNAME"), (40, "SINK"), (41, "OPT"),
    (42, "APL"), (43, "DS"), (44, "SSHFP"), (45, "IPSECKEY"), (46, "RRSIG"), (47, "NSEC"), (48, "DNSKEY"),
    (49, "DHCID"), (50, "NSEC3"), (51, "NSEC3PARAM"), (52, "TLSA"), (53, "SMIMEA"), (55, "HIP"), (56, "NINFO"),
    (57, "RKEY"), (58, "TALINK"), (59, "CDS"), (60, "CDNSKEY"), (61, "OPENPGPKEY"), (62, "CSYNC"), (63, "ZONEMD"),
    (64, "SVCB"), (65, "HTTPS"), (66, "DSYNC"), (67, "HHIT"), (68, "BRID"), (99, "SPF"), (100, "UINFO"), (101, "UID"),
    (102, "GID"), (103, "UNSPEC"), (104, "NID"), (105, "L32"), (106, "L64"), (107, "LP"), (108, "EUI48"),
    (109, "EUI64"), (128, "NXNAME"), (249, "TKEY"), (250, "TSIG"), (251, "IXFR"), (252, "AXFR"), (253, "MAILB"),
    (254, "MAILA"), (255, "ANY"), (256, "URI"), (257, "CAA"), (258, "AVC"), (259, "DOA"), (260, "AMTRELAY"),
    (261, "RESINFO"), (262, "WALLET"), (263, "CLA"), (264, "IPN"), (32768, "TA"), (32769, "DLV"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_fit_the_numbers() {
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
        let read = [A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, DNAME].map(name);
        assert_eq!(read.map(Option::unwrap), ["A", "NS", "CNAME", "SOA", "PTR", "MX", "TXT", "AAAA", "SRV", "DNAME"]);
        assert_eq!(
            [0, 7, 65, 255, 32769, 32770].map(name),
            [None, Some("MB"), Some("HTTPS"), Some("ANY"), Some("DLV"), None]
        );
        assert_eq!([0, 3, 10, 11].map(rcode_name), [Some("NOERROR"), Some("NXDOMAIN"), Some("NOTZONE"), None]);
    }
}
