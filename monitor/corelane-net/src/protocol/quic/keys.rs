//! The keys of Initial packets, which follow from the client's first connection ID (RFC 9001, 5; RFC 9369, 3.3).

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;

use super::header::{MVFST_22, MVFST_27, MVFST_TRIAL, T050, T051, V1, V2};

/// The length of the authentication tag.
const TAG: usize = 16;
/// The longest packet number; the sample for the mask begins behind that many bytes.
const LONGEST_NUMBER: usize = 4;
const SAMPLE: usize = 16;

/// What a version derives keys with.
struct Version {
    salt: [u8; 20],
    /// The labels of the key, the nonce and the key of the header's mask.
    labels: [&'static [u8]; 3],
}

const VERSION_1: Version = Version {
    salt: [
        0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb,
        0x7f, 0x0a,
    ],
    labels: [b"quic key", b"quic iv", b"quic hp"],
};
/// Drafts 29 to 32; 33 and 34 have the salt of version 1.
const DRAFT_29: Version = Version {
    salt: [
        0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43, 0x90,
        0xa8, 0x99,
    ],
    ..VERSION_1
};
/// Drafts 23 to 28.
const DRAFT_23: Version = Version {
    salt: [
        0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65, 0xbe, 0xf9,
        0xf5, 0x02,
    ],
    ..VERSION_1
};
/// Draft 22, of one company's own version alone.
const DRAFT_22: Version = Version {
    salt: [
        0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a, 0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd, 0x7a, 0x02,
        0x64, 0x4a,
    ],
    ..VERSION_1
};
const GOOGLE_50: Version = Version {
    salt: [
        0x7f, 0xf5, 0x79, 0xe5, 0xac, 0xd0, 0x72, 0x91, 0x55, 0x80, 0x30, 0x4c, 0x43, 0xa2, 0x36, 0x7c, 0x60, 0x48,
        0x83, 0x10,
    ],
    ..VERSION_1
};
const GOOGLE_51: Version = Version {
    salt: [
        0x7a, 0x4e, 0xde, 0xf4, 0xe7, 0xcc, 0xee, 0x5f, 0xa4, 0x50, 0x6c, 0x19, 0x12, 0x4f, 0xc8, 0xcc, 0xda, 0x6e,
        0x03, 0x3d,
    ],
    ..VERSION_1
};
const VERSION_2: Version = Version {
    salt: [
        0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd,
        0x2e, 0xd9,
    ],
    labels: [b"quicv2 key", b"quicv2 iv", b"quicv2 hp"],
};

/// The keys of one side's Initial packets.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Keys {
    pub(super) version: u32,
    key: [u8; 16],
    nonce: [u8; 12],
    mask: [u8; 16],
}

impl Keys {
    /// The keys of the client or of the server, from the destination in the client's first Initial packet, or in its
    /// first one behind a Retry. There are none for versions that are not known.
    pub(in crate::protocol) fn new(version: u32, id: &[u8], is_client: bool) -> Option<Self> {
        let Version { salt, labels } = match version {
            V1 | 0xff00_0021..=0xff00_0022 => VERSION_1,
            V2 => VERSION_2,
            0xff00_001d..=0xff00_0020 => DRAFT_29,
            0xff00_0017..=0xff00_001c | MVFST_27 | MVFST_TRIAL => DRAFT_23,
            MVFST_22 => DRAFT_22,
            T050 => GOOGLE_50,
            T051 => GOOGLE_51,
            _ => return None,
        };
        let (_, secrets) = Hkdf::<Sha256>::extract(Some(&salt), id);
        let mut secret = [0; 32];
        expand(&secrets, if is_client { b"client in" } else { b"server in" }, &mut secret);
        let secret = Hkdf::<Sha256>::from_prk(&secret).expect("as long as a hash");
        let mut keys = Keys { version, key: [0; 16], nonce: [0; 12], mask: [0; 16] };
        expand(&secret, labels[0], &mut keys.key);
        expand(&secret, labels[1], &mut keys.nonce);
        expand(&secret, labels[2], &mut keys.mask);
        Some(keys)
    }

    /// Decrypts a packet and checks its tag. `next_number` is the packet number that comes next. Returns the number
    /// and the content.
    pub(super) fn open(&self, packet: &[u8], number_at: usize, next_number: u64) -> Option<(u64, Vec<u8>)> {
        let sample = packet.get(number_at + LONGEST_NUMBER..)?.first_chunk()?;
        let mask = self.mask(sample);
        let mut packet = packet.to_vec();
        packet[0] ^= mask[0] & 0x0f;
        let content_at = number_at + usize::from(packet[0] & 3) + 1;
        packet[number_at..content_at].iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
        let short = packet[number_at..content_at].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let number = whole_number(next_number, short, 8 * (content_at - number_at) as u32);
        let (header, content) = packet.split_at_mut(content_at);
        let (content, tag) = content.split_last_chunk_mut::<TAG>()?;
        let tag = Tag::from(*tag);
        self.cipher().decrypt_inout_detached(&self.nonce(number), header, content.into(), &tag).ok()?;
        packet.truncate(packet.len() - TAG);
        packet.drain(..content_at);
        Some((number, packet))
    }

    /// Encrypts a packet: `header` with the low bits of the number in four bytes at its end. For tests and fuzzing: the
    /// monitor sends nothing.
    pub(in crate::protocol) fn seal(&self, header: &[u8], number: u64, content: &[u8]) -> Vec<u8> {
        let number_at = header.len() - LONGEST_NUMBER;
        let mut packet = [header, content].concat();
        let body = &mut packet[header.len()..];
        let tag = self.cipher().encrypt_inout_detached(&self.nonce(number), header, body.into());
        packet.extend_from_slice(&tag.expect("not too long"));
        let mask = self.mask(packet[header.len()..].first_chunk().expect("the tag has as many bytes"));
        packet[0] ^= mask[0] & 0x0f;
        packet[number_at..header.len()].iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
        packet
    }

    fn cipher(&self) -> Aes128Gcm {
        Aes128Gcm::new(&self.key.into())
    }

    fn nonce(&self, number: u64) -> Nonce<aes_gcm::aead::consts::U12> {
        let mut nonce = self.nonce;
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
        nonce.into()
    }

    /// What hides the first byte's low bits and the packet number.
    fn mask(&self, sample: &[u8; SAMPLE]) -> [u8; 16] {
        let mut block = (*sample).into();
        Aes128::new(&self.mask.into()).encrypt_block(&mut block);
        block.into()
    }
}

/// HKDF-Expand-Label of TLS 1.3 without a context (RFC 8446, 7.1).
fn expand(secret: &Hkdf<Sha256>, label: &[u8], out: &mut [u8]) {
    let info: [&[u8]; 4] = [&[0, out.len() as u8, 6 + label.len() as u8], b"tls13 ", label, &[0]];
    secret.expand_multi_info(&info, out).expect("shorter than 255 hashes");
}

/// The number with these low bits that is next to the expected one (RFC 9000, A.3).
fn whole_number(next_number: u64, short: u64, bits: u32) -> u64 {
    let window = 1_u64 << bits;
    let candidate = next_number & !(window - 1) | short;
    if candidate + window / 2 <= next_number && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > next_number + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of draft-ietf-quic-tls-29 and -27, A.1: a client's key, nonce, and key of the mask.
    #[test]
    fn drafts_have_salts_of_their_own() {
        let id = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let text = |version| {
            let keys = Keys::new(version, &id, true).unwrap();
            [&keys.key[..], &keys.nonce, &keys.mask].map(|bytes| {
                let mut text = String::new();
                crate::protocol::text::hex(&mut text, bytes);
                text
            })
        };
        let draft_29 =
            ["175257a31eb09dea9366d8bb79ad80ba", "6b26114b9cba2b63a9e8dd4f", "9ddd12c994c0698b89374a9c077a3077"];
        let draft_27 =
            ["af7fd7efebd21878ff66811248983694", "8681359410a70bb9c92f0420", "a980b8b4fb7d9fbc13e814c23164253d"];
        for version in 0xff00_001d..=0xff00_0020 {
            assert_eq!(text(version), draft_29);
        }
        for version in [0xff00_0017, 0xff00_001b, 0xff00_001c, MVFST_27, MVFST_TRIAL] {
            assert_eq!(text(version), draft_27);
        }
        assert_eq!(text(0xff00_0021), text(V1));
        assert_eq!(text(0xff00_0022), text(V1));
        let of_companies = [MVFST_22, T050, T051].map(text);
        let all: std::collections::HashSet<_> = of_companies.iter().flatten().map(String::as_str).collect();
        assert!(all.len() == 9 && ![draft_29, draft_27].iter().flatten().any(|other| all.contains(other)));
        assert!(Keys::new(0xff00_0016, &id, true).is_none() && Keys::new(0xff00_0023, &id, true).is_none());
    }

    /// The example of RFC 9000, A.3, and the ends of its ranges.
    #[test]
    fn packet_numbers_are_completed() {
        assert_eq!(whole_number(0xa82f_30eb, 0x9b32, 16), 0xa82f_9b32);
        assert_eq!(whole_number(0, 0xff, 8), 0xff);
        assert_eq!(whole_number(0x100, 0xff, 8), 0xff);
        assert_eq!(whole_number(0xff, 1, 8), 0x101);
        assert_eq!(whole_number((1 << 62) - 1, 0, 8), (1 << 62) - 256);
    }
}
