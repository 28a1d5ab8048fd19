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
}

const ETHERNET: usize = 14;

impl Tunnel {
    /// All tunnels.
    pub const ALL: [Self; 10] = [
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
    ];

    /// Wraps a frame. The result is an Ethernet frame with an outer header of IPv4 or, with `v6`, of IPv6; it lacks as
    /// many bytes on the wire as the frame does. `None` for a frame without a sound IP header, and for one that is too
    /// long for the length fields.
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
        let packet = &record.data[usize::from(located.at)..];
        let missing = (record.wire_len as usize).saturating_sub(record.data.len());
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
        !matches!(self, Self::Ip | Self::Gre | Self::Pptp | Self::Gtp)
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
        })
    }
}

/// An Ethernet header in front of IP.
fn ethernet(is_v4: bool) -> [u8; ETHERNET] {
    let mut header = [2; ETHERNET];
    header[12..].copy_from_slice(if is_v4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
    header
}
