//! The tests of a suite by their names, for one of those that it runs over.

/// A test for each function, of the family's module, over the `This` of the module around.
macro_rules! tests {
    ($($family:ident { $($test:ident)+ })+) => {
        $(mod $family {
            $(#[test]
            fn $test() {
                crate::watchdog::guard(|| crate::$family::$test::<super::This>());
            })+
        })+
    };
}
