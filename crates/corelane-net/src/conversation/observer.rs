//! The trait through which code hears of conversations.

use super::application::Application;
use super::entry::{Conversation, Ending};
use crate::decode::Tunnel;

/// The treatment of a partition's conversations: which protocols look into them, and where their records go.
pub trait Observer<A: Application> {
    /// Takes a conversation's first payload. `None` means that nothing looks into it, and it is only counted.
    ///
    /// The tunnel is that of the packet that began the conversation, if there is one. Its source is on the originator's
    /// side.
    fn begin(&mut self, conversation: &Conversation, tunnel: Option<&Tunnel>) -> Option<A>;

    /// Takes what an application has found, after a packet or a mark has called it. What is left there is there again
    /// at the next call, for whatever conversation that is.
    fn progress(&mut self, conversation: &Conversation, application: &mut A, found: &mut A::Found) {
        let _ = (conversation, application, found);
    }

    /// Takes a conversation that is over, with what was found at its end. Its application, if it has one, has been told
    /// the end of both sides.
    fn over(&mut self, conversation: &Conversation, ending: &Ending, application: Option<A>, found: &mut A::Found);
}
