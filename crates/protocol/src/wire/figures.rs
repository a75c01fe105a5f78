//! Figures of a status: numbers that are declared once, in a table, with name, unit, meaning and metric.
//!
//! [`figures!`] makes of a table the fields of a struct, their bytes on the wire and a [`Figures::TABLE`], from which the
//! commands derive JSON and metrics. A figure is added by a line of a table; `docs/` describes it for people. Numbers that
//! are computed from several others, lists and texts are not figures.

use crate::wire::frame::Writer;
use crate::wire::ring::{get_span, put_span};
use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_format::{FieldReader, FormatError};
use std::time::Duration;

/// Value of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureValue {
    /// A number of things, bytes, or bytes a second.
    Count(u64),
    /// A span of time; shown in seconds.
    Span(Duration),
    /// A moment.
    Time(Timestamp),
}

/// Metric of a figure, as Prometheus names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name without `holdfast_`. Figures of a table with the same name are samples of one metric; `label` tells them apart.
    pub name: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// Label that tells this figure from others of the metric.
    pub label: Option<(&'static str, &'static str)>,
    /// Help text, where it is not the figure's meaning.
    pub help: Option<&'static str>,
}

/// Metric of a number that may fall.
pub(crate) const fn gauge(name: &'static str) -> Metric {
    Metric { name, kind: "gauge", label: None, help: None }
}

/// Metric of a number that only grows while a recorder runs.
pub(crate) const fn counter(name: &'static str) -> Metric {
    Metric { name, kind: "counter", label: None, help: None }
}

/// Metric that several figures share: slots by state.
pub(crate) const fn slots_in(state: &'static str) -> Metric {
    let help = "Slots by state; damaged ones are counted as live, held or pinned too.";
    Metric { label: Some(("state", state)), help: Some(help), ..gauge("slots") }
}

/// Metric that two figures share: bytes written by kind.
pub(crate) const fn written(kind: &'static str) -> Metric {
    let help = "Bytes written to the lane.";
    Metric { label: Some(("kind", kind)), help: Some(help), ..counter("lane_written_bytes_total") }
}

/// One figure of a `T`.
#[derive(Debug)]
pub struct Figure<T> {
    /// Key in JSON.
    pub key: &'static str,
    /// Meaning, a sentence.
    meaning: &'static str,
    /// Its metric, if it has one.
    pub metric: Option<Metric>,
    /// Reads its value.
    pub value: fn(&T) -> FigureValue,
}

impl<T> Figure<T> {
    pub(crate) const fn new(
        key: &'static str,
        meaning: &'static str,
        metric: Option<Metric>,
        value: fn(&T) -> FigureValue,
    ) -> Self {
        Self { key, meaning, metric, value }
    }

    /// Help text of its metric: what it means, in a sentence.
    pub fn help(&self) -> &'static str {
        self.metric.and_then(|metric| metric.help).unwrap_or_else(|| self.meaning.trim_ascii_start())
    }
}

/// A status with a table of figures.
pub trait Figures: Sized + 'static {
    /// All figures, in the order of the wire.
    const TABLE: &'static [Figure<Self>];
}

/// A status whose figures stand one behind the other on the wire.
pub(crate) trait WireFigures: Figures + Default {
    /// Appends all figures but those that are marked as `appended`.
    fn put_figures(&self, put: &mut Writer);

    /// Takes what [`WireFigures::put_figures`] appends; everything else is left at its default.
    fn get_figures(get: &mut FieldReader<'_>) -> Result<Self, FormatError>;
}

/// Type of a figure: its bytes and its value.
pub(crate) trait WireFigure: Copy {
    fn put(self, put: &mut Writer);
    fn get(get: &mut FieldReader<'_>, what: &'static str) -> Result<Self, FormatError>;
    fn value(self) -> FigureValue;
}

macro_rules! wire_figure {
    ($type:ty, $self:ident, $put:ident => $write:expr, $get:ident, $what:ident => $read:expr, $value:expr) => {
        impl WireFigure for $type {
            fn put($self, $put: &mut Writer) {
                $write;
            }

            fn get($get: &mut FieldReader<'_>, $what: &'static str) -> Result<Self, FormatError> {
                $read
            }

            fn value($self) -> FigureValue {
                $value
            }
        }
    };
}

wire_figure!(u32, self, put => put.u32(self), get, what => get.named(what).u32(), FigureValue::Count(self.into()));
wire_figure!(u64, self, put => put.u64(self), get, what => get.named(what).u64(), FigureValue::Count(self));
wire_figure!(ByteSize, self, put => put.u64(self.0), get, what => get.named(what).u64().map(Self), FigureValue::Count(self.0));
wire_figure!(Rate, self, put => put.u64(self.0), get, what => get.named(what).u64().map(Self), FigureValue::Count(self.0));
wire_figure!(Duration, self, put => put_span(put, self), get, what => get_span(get, what), FigureValue::Span(self));
wire_figure!(Timestamp, self, put => put.time(self), get, what => get.named(what).time(), FigureValue::Time(self));

/// Declares figures: `/// Meaning.` and `field: type = wire, "JSON key", metric;` each, in the order of the wire. Instead of
/// `wire`, `appended` marks a figure that an earlier version of the protocol did not have: it is written elsewhere.
///
/// `pub struct Name { figures } and { other fields }` makes the struct as well.
macro_rules! figures {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $wire:ident, $key:literal, $metric:expr;)*
        } and {
            $($(#[doc = $other_meaning:literal])+ $other:ident: $other_type:ty,)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: $type,)*
            $($(#[doc = $other_meaning])+ pub $other: $other_type,)*
        }

        $crate::wire::figures::figures! {
            impl $name {
                $($(#[doc = $meaning])+ $field: $type = $wire, $key, $metric;)*
            }
        }
    };
    (
        impl $name:ident {
            $($(#[doc = $meaning:literal])+ $field:ident: $type:ty = $wire:ident, $key:literal, $metric:expr;)*
        }
    ) => {
        impl $crate::wire::figures::Figures for $name {
            const TABLE: &'static [$crate::wire::figures::Figure<Self>] = &[
                $($crate::wire::figures::Figure::new($key, concat!($($meaning),+), $metric, |of: &Self| {
                    $crate::wire::figures::WireFigure::value(of.$field)
                }),)*
            ];
        }

        impl $crate::wire::figures::WireFigures for $name {
            fn put_figures(&self, put: &mut $crate::wire::frame::Writer) {
                $($crate::wire::figures::figures!(@put $wire put, self.$field);)*
            }

            fn get_figures(
                get: &mut holdfast_format::FieldReader<'_>,
            ) -> Result<Self, holdfast_format::FormatError> {
                let mut all = Self::default();
                $($crate::wire::figures::figures!(@get $wire get, all.$field, $key);)*
                Ok(all)
            }
        }
    };
    (@put wire $put:ident, $from:expr) => { $crate::wire::figures::WireFigure::put($from, $put) };
    (@put appended $put:ident, $from:expr) => {};
    (@get wire $get:ident, $into:expr, $key:literal) => {
        $into = $crate::wire::figures::WireFigure::get($get, $key)?
    };
    (@get appended $get:ident, $into:expr, $key:literal) => {};
}
pub(crate) use figures;
