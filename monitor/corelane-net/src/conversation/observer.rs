//! The trait through which code is notified of conversations.

use super::application::Application;
use super::entry::{Conversation, Ending};
use crate::decode::Tunnel;

/// The treatment of a partition's conversations: which protocols look into them, and where their records go.
pub trait Observer<A: Application> {
    /// Takes a conversation's first payload. `None` means that nothing looks into it, and it is only counted.
    fn begin(&mut self, conversation: &Conversation) -> Option<A>;

    /// Takes what an application has found, after a packet or a mark has called it. What is left there is there again
    /// at the next call, for whatever conversation that is.
    ///
    /// The tunnel is that of its first packet that came through one, a SYN aside. Its source is on the originator's
    /// side.
    fn progress(
        &mut self,
        conversation: &Conversation,
        application: &mut A,
        tunnel: Option<&Tunnel>,
        found: &mut A::Found,
    ) {
        let _ = (conversation, application, tunnel, found);
    }

    /// Takes an attempt to open a connection that led to nothing: its SYNs were refused, which an RST of the responder
    /// shows, or not answered. It is no conversation, and is not counted as one.
    fn attempted(&mut self, attempt: &Conversation, ending: &Ending) {
        let _ = (attempt, ending);
    }

    /// Takes a conversation that is over, with what was found at its end. Its application, if it has one, has received
    /// the end of both sides.
    fn over(&mut self, conversation: &Conversation, ending: &Ending, application: Option<A>, found: &mut A::Found);
}
