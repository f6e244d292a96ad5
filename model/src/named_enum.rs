//! A macro for enums whose variants have names: words of the API, of the configuration, of records, or labels of metrics.

/// Declares an enum, with the name of each variant on its row. A variant cannot be forgotten in `ALL`.
///
/// ```
/// cairn_model::named_enum! {
///     /// A state, named as in the management API.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub enum State {
///         /// It runs.
///         Running => "running",
///         /// It has ended. A number on disk may stand before the name.
///         Ended = 7 => "ended",
///     }
/// }
///
/// assert_eq!(State::ALL.map(State::name), ["running", "ended"]);
/// assert_eq!(State::Ended as u8, 7);
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$attribute:meta])* $visibility:vis enum $enum:ident {
        $($(#[$about:meta])* $variant:ident $(= $number:literal)? => $name:literal,)+
    }) => {
        $(#[$attribute])*
        $visibility enum $enum {
            $($(#[$about])* $variant $(= $number)?,)+
        }

        impl $enum {
            /// All variants, in the order of their declaration.
            $visibility const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            /// Returns the name of the variant.
            #[must_use]
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
