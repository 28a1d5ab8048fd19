//! The seam between conversations and the code that hears of them.

use super::application::Application;
use super::entry::{Conversation, Ending};

/// What is done about the conversations of a partition: which protocols look into them, and where their records go.
pub trait Observer<A: Application> {
    /// A conversation has brought its first payload. `None` if it is not to be looked into; then it is only counted.
    fn begin(&mut self, conversation: &Conversation) -> Option<A>;

    /// A packet, or a mark, has made an application take something; so here is what it found to be fetched.
    fn progress(&mut self, conversation: &Conversation, application: &mut A) {
        let _ = (conversation, application);
    }

    /// A conversation is over. Both sides of its application, if it has one, have been told.
    fn over(&mut self, conversation: &Conversation, ending: &Ending, application: Option<A>);
}
