//! Frames wrapped in tunnels, to check that a monitor reports the same of them as of the bare ones.

use crate::capture::{LinkType, Record};
use crate::decode::{Located, UDP, locate};

/// A tunnel around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// The packet right behind an IP header: IPIP, 6in4, 4in6.
    Ip,
    /// GRE with a checksum, a key and a sequence number.
    Gre,
    /// Ethernet in GRE, as in NVGRE.
    Nvgre,
    /// ERSPAN of the first type, without a header of its own.
    Erspan1,
    /// ERSPAN of the second type.
    Erspan2,
    /// ERSPAN of the third type, with the header of a platform.
    Erspan3,
    /// PPP in the GRE of PPTP.
    Pptp,
    /// VXLAN.
    Vxlan,
    /// Geneve with an option.
    Geneve,
    /// GTP-U with an extension header.
    Gtp,
    /// Ethernet in IP, as EtherIP does it.
    EtherIp,
    /// L2TP of version 2 over UDP, with all its fields, and PPP.
    L2tp,
    /// L2TP of version 3 over IP, with a cookie and a header, and Ethernet.
    L2tp3,
    /// L2TP of version 3 over UDP, with a cookie, and Ethernet.
    L2tp3Udp,
    /// Teredo with both indications. Only IPv6 can be wrapped, and only if it states its length.
    Teredo,
    /// MPLS over UDP. Only what states its length can be wrapped.
    MplsUdp,
}

const ETHERNET: usize = 14;

impl Tunnel {
    /// All tunnels.
    pub const ALL: [Self; 16] = [
        Self::Ip,
        Self::Gre,
        Self::Nvgre,
        Self::Erspan1,
        Self::Erspan2,
        Self::Erspan3,
        Self::Pptp,
        Self::Vxlan,
        Self::Geneve,
        Self::Gtp,
        Self::EtherIp,
        Self::L2tp,
        Self::L2tp3,
        Self::L2tp3Udp,
        Self::Teredo,
        Self::MplsUdp,
    ];

    /// Wraps a frame. The result is an Ethernet frame with an outer header of IPv4 or, with `v6`, of IPv6; it lacks as
    /// many bytes on the wire as the frame does, or as the packet where only that fits in. `None` for a frame without a
    /// sound IP header, for one that is too long for the length fields, and for what the tunnel cannot carry.
    ///
    /// ```
    /// use corelane_net::capture::{LinkType, Record};
    /// use corelane_net::decode::{innermost, locate};
    /// use corelane_net::synth::Tunnel;
    ///
    /// let bare = [0x45, 0, 0, 21, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 8];
    /// let record = Record { time_ns: 0, wire_len: 21, link: LinkType::RAW, data: &bare };
    /// let frame = Tunnel::Vxlan.wrap(&record, false).unwrap();
    /// let found = innermost(&frame, locate(LinkType::ETHERNET, &frame).unwrap());
    /// assert_eq!((found.depth, &frame[found.located.at.into()..]), (1, &bare[..]));
    /// ```
    pub fn wrap(self, record: &Record<'_>, v6: bool) -> Option<Vec<u8>> {
        let located = locate(record.link, record.data).ok()?;
        let mut packet = &record.data[usize::from(located.at)..];
        let mut missing = (record.wire_len as usize).saturating_sub(record.data.len());
        if matches!(self, Self::Teredo | Self::MplsUdp) {
            // Neither has room for what is behind the packet.
            let stated = stated(packet, located.is_v4).filter(|&stated| stated <= packet.len() + missing)?;
            missing = stated.saturating_sub(packet.len());
            packet = &packet[..stated.min(packet.len())];
        }
        let mut content = self.headers(packet.len() + missing, located)?;
        if self.carries_ethernet() {
            match record.link {
                LinkType::ETHERNET => content.extend_from_slice(record.data),
                _ => content.extend([&ethernet(located.is_v4)[..], packet].concat()),
            }
        } else {
            content.extend_from_slice(packet);
        }
        let (protocol, port) = match self {
            Self::Ip => (if located.is_v4 { 4 } else { 41 }, None),
            Self::Vxlan => (UDP, Some(4789)),
            Self::Geneve => (UDP, Some(6081)),
            Self::Gtp => (UDP, Some(2152)),
            Self::L2tp | Self::L2tp3Udp => (UDP, Some(1701)),
            Self::Teredo => (UDP, Some(3544)),
            Self::MplsUdp => (UDP, Some(6635)),
            Self::EtherIp => (97, None),
            Self::L2tp3 => (115, None),
            _ => (47, None),
        };
        if let Some(port) = port {
            let length = u16::try_from(8 + content.len() + missing).ok()?;
            let header = [49_152_u16, port, length, 0].map(u16::to_be_bytes).concat();
            content.splice(..0, header);
        }
        let length = u16::try_from(40 + content.len() + missing).ok()?;
        let mut frame = ethernet(!v6).to_vec();
        if v6 {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend((length - 40).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(0x2001_0db8_u128.rotate_right(32).wrapping_add(1).to_be_bytes());
            frame.extend(0x2001_0db8_u128.rotate_right(32).wrapping_add(2).to_be_bytes());
        } else {
            frame.extend([0x45, 0]);
            frame.extend((length - 20).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        }
        frame.extend(content);
        Some(frame)
    }

    fn carries_ethernet(self) -> bool {
        !matches!(self, Self::Ip | Self::Gre | Self::Pptp | Self::Gtp | Self::L2tp | Self::Teredo | Self::MplsUdp)
    }

    /// The tunnel's own headers in front of a packet of this many bytes.
    fn headers(self, length: usize, located: Located) -> Option<Vec<u8>> {
        let [a, b] = if located.is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
        let of = |length: usize| u16::try_from(length).map(u16::to_be_bytes).ok();
        Some(match self {
            Self::Ip => vec![],
            Self::Gre => vec![0xb0, 0, a, b, 1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1],
            Self::Nvgre => vec![0x20, 0, 0x65, 0x58, 0, 0x10, 0, 1],
            Self::Erspan1 => vec![0, 0, 0x88, 0xbe],
            Self::Erspan2 => vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0],
            Self::Erspan3 => {
                let mut headers = vec![0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
                headers.extend([0; 8]);
                headers
            }
            Self::Pptp => {
                let [high, low] = of(length + 4)?;
                let protocol = if located.is_v4 { 0x21 } else { 0x57 };
                vec![0x30, 0x81, 0x88, 0x0b, high, low, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, protocol]
            }
            Self::Vxlan => vec![8, 0, 0, 0, 0, 0, 1, 0],
            Self::Geneve => vec![2, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0],
            Self::Gtp => {
                let [high, low] = of(length + 8)?;
                vec![0x34, 255, high, low, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0]
            }
            Self::EtherIp => vec![0x30, 0],
            Self::L2tp => {
                let [high, low] = of(length + 20)?;
                let protocol = if located.is_v4 { 0x21 } else { 0x57 };
                vec![0x4a, 2, high, low, 0, 1, 0, 2, 0, 3, 0, 4, 0, 2, 9, 9, 0xff, 3, 0, protocol]
            }
            Self::L2tp3 => vec![0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 0x40, 0, 0, 1],
            Self::L2tp3Udp => vec![0, 3, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9],
            Self::Teredo if located.is_v4 => return None,
            Self::Teredo => {
                let mut headers = vec![0, 1, 2, 4, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0];
                headers.extend([0, 0, 0x63, 0xbf, 0x3f, 0xff, 0xfd, 0xfe]);
                headers
            }
            Self::MplsUdp => vec![0, 1, 0, 64, 0, 2, 1, 64],
        })
    }
}

/// The length of a packet by its header, if that states one.
fn stated(packet: &[u8], is_v4: bool) -> Option<usize> {
    let length = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let (least, stated) = if is_v4 { (usize::from(packet[0] & 0x0f) * 4, length(2)) } else { (41, 40 + length(4)) };
    (stated >= least).then_some(stated)
}

/// An Ethernet header in front of IP.
fn ethernet(is_v4: bool) -> [u8; ETHERNET] {
    let mut header = [2; ETHERNET];
    header[12..].copy_from_slice(if is_v4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
    header
}
