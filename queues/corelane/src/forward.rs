//! Calls of a type that are those of a part of it.

/// `forward! { part: /** Documentation. */ pub fn call(&mut self, item: T) -> R; }`: calls that are those of
/// `self.part`.
macro_rules! forward {
    ($($part:ident).+:) => {};
    (
        $($part:ident).+:
        $(#[$attribute:meta])*
        $visibility:vis fn $call:ident(&mut $this:ident $(, $argument:ident: $type:ty)*) $(-> $output:ty)?
        $(where $bounded:ident: $bound:path)?;
        $($rest:tt)*
    ) => {
        $(#[$attribute])*
        $visibility fn $call(&mut $this $(, $argument: $type)*) $(-> $output)? $(where $bounded: $bound)? {
            $this.$($part).+.$call($($argument),*)
        }
        $crate::forward::forward! { $($part).+: $($rest)* }
    };
    (
        $($part:ident).+:
        $(#[$attribute:meta])*
        $visibility:vis fn $call:ident(&$this:ident $(, $argument:ident: $type:ty)*) $(-> $output:ty)?;
        $($rest:tt)*
    ) => {
        $(#[$attribute])*
        $visibility fn $call(&$this $(, $argument: $type)*) $(-> $output)? {
            $this.$($part).+.$call($($argument),*)
        }
        $crate::forward::forward! { $($part).+: $($rest)* }
    };
}
pub(crate) use forward;
