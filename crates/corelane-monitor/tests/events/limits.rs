//! What both analyses keep stays within what they may.

use crate::support::{of_bytes, plan};
use corelane_monitor::{Inspection, PARTITIONS, QueueKind};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::synth::Conversations;

#[test]
fn conversations_and_fragments_stay_within_their_limits() {
    let capture = Conversations { seed: 9, conversations: 5000, trouble: 50, spoofed: 100_000 }.capture();
    let inspection = Inspection { conversations: Limits::new(LEAST_BYTES), ..Inspection::default() };
    let run = of_bytes(&capture, &inspection, &plan(2, QueueKind::Lane, 64));
    let most = (PARTITIONS * LEAST_BYTES) as u64;
    let reserved = run.findings.conversation_bytes;
    assert!(reserved <= most && reserved > most / 4, "{reserved}");
    assert!(run.findings.conversations.evicted > 0);
}
