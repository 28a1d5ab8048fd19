//! What cannot be opened says why, and what to do.

use corelane_net::capture::filter::Instruction;
use corelane_net::capture::live::{Live, LiveError, Options};

use crate::state::permit;
use crate::support::{inside, options, pair, skip, tunnel};

fn refused(interface: &str, options: &Options) -> (LiveError, String) {
    let error = Live::open(interface, options).unwrap_err();
    let text = error.to_string();
    (error, text)
}

#[test]
fn a_missing_interface_names_those_there_are() {
    inside("errors::a_missing_interface_names_those_there_are", || {
        pair();
        for name in ["c0", "", "an interface name that is too long", "a0\0"] {
            let (error, text) = refused(name, &options());
            assert!(matches!(error, LiveError::NoInterface { .. }), "{text}");
            assert!(text.contains("a0") && text.contains("b0"), "{text}");
        }
    });
}

#[test]
fn a_process_without_the_right_is_told_which() {
    inside("errors::a_process_without_the_right_is_told_which", || {
        pair();
        permit(false);
        let (error, text) = refused("b0", &options());
        assert!(matches!(error, LiveError::NotPermitted { .. }), "{text}");
        assert!(text.contains("CAP_NET_RAW") && text.contains("setcap cap_net_raw+ep"), "{text}");
        permit(true);
        Live::open("b0", &options()).unwrap();
    });
}

#[test]
fn sizes_out_of_range_are_refused() {
    inside("errors::sizes_out_of_range_are_refused", || {
        pair();
        for bytes in [1 << 32, 1 << 40, usize::MAX] {
            let (error, text) = refused("b0", &options().ring_bytes(bytes));
            assert!(matches!(error, LiveError::RingTooLarge { .. }) && text.contains(&bytes.to_string()), "{text}");
        }
        for snaplen in [0, 63, 262_145, u32::MAX] {
            let (error, text) = refused("b0", &options().snaplen(snaplen));
            assert!(matches!(error, LiveError::BadSnaplen(_)) && text.contains("64 to 262144"), "{text}");
        }
        for snaplen in [64, 65_535, 262_144] {
            Live::open("b0", &options().snaplen(snaplen).ring_bytes(0)).unwrap();
        }
    });
}

#[test]
fn a_filter_that_the_kernel_refuses_is_an_error() {
    inside("errors::a_filter_that_the_kernel_refuses_is_an_error", || {
        pair();
        let jump = Instruction { code: 0x15, jt: 9, jf: 9, k: 0 };
        for filter in [vec![], vec![jump], vec![jump; 5000], vec![jump; 65_537]] {
            let instructions = filter.len();
            let (error, text) = refused("b0", &options().filter(Some(filter)));
            assert!(matches!(error, LiveError::FilterRefused { .. }), "{text}");
            assert!(text.contains(&format!("{instructions} instructions")), "{text}");
        }
    });
}

#[test]
fn an_interface_of_another_kind_is_refused() {
    inside("errors::an_interface_of_another_kind_is_refused", || {
        // Wireless frames with a header of their own.
        let Some(_tunnel) = tunnel(803) else {
            return skip("an_interface_of_another_kind_is_refused: no tun interfaces");
        };
        let (error, text) = refused("t0", &options());
        assert!(matches!(error, LiveError::UnknownLink { kind: 803, .. }) && text.contains("t0"), "{text}");
    });
}
