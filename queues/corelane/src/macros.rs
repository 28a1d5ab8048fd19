//! What many types have in the same way: calls that are those of a part, and `Debug`.

/// `forward! { part: /** Documentation. */ pub fn call(&mut self, item: T) -> R; }`: calls that are those of
/// `self.part`.
#[allow(unused_macros, reason = "for families that not every machine has")]
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
        $crate::macros::forward! { $($part).+: $($rest)* }
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
        $crate::macros::forward! { $($part).+: $($rest)* }
    };
}
pub(crate) use forward;

/// `debug! { [T] Name<[T]>: self, field: self.field }`: `Debug` as that of a struct with these fields, and others.
macro_rules! debug {
    ([$($generics:tt)*] $name:ident<[$($argument:tt)*]>: $this:ident $(, $field:ident: $value:expr)* $(,)?) => {
        impl<$($generics)*> core::fmt::Debug for $name<$($argument)*> {
            fn fmt(&$this, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug;
