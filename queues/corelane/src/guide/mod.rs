//! What is not about one item: [which queue](choosing), [what all promise](guarantees), [how ends wait](waiting).
//!
//! These pages are documentation only. They do not repeat the pages of the families, which they link to.

pub mod choosing;
pub mod guarantees;
pub mod waiting;
