//! Metrics as they are given: as Prometheus has them in text, or as JSON. Which ones there are is `figures`'.

use holdfast_protocol::wire::{Figure, FigureValue, Figures, Metric};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use std::fmt::{self, Display, Write as _};

/// A number that is shown as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Count(u64),
    Real(f64),
}

impl From<u8> for Value {
    fn from(count: u8) -> Self {
        Self::Count(count.into())
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<FigureValue> for Value {
    fn from(value: FigureValue) -> Self {
        match value {
            FigureValue::Count(count) => Self::Count(count),
            FigureValue::Span(span) => Self::Real(span.as_secs_f64()),
            FigureValue::Time(time) => Self::Real(time.0 as f64 / 1e9),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Real(real) => real.fmt(f),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => to.serialize_u64(*count),
            Self::Real(real) => to.serialize_f64(*real),
        }
    }
}

/// One number of a metric.
#[derive(Debug)]
struct Sample {
    /// With what it adds to the metric's: `_bucket`, for example.
    name: String,
    labels: Vec<(&'static str, String)>,
    value: Value,
}

/// A metric.
#[derive(Debug)]
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// All metrics of a ring. `Display` gives the text, `Serialize` the same for programs.
#[derive(Debug)]
pub(crate) struct Page {
    ring: String,
    families: Vec<Family>,
}

impl Page {
    /// An empty one.
    pub(super) fn new(ring: String) -> Self {
        Self { ring, families: Vec::new() }
    }

    /// Begins a metric.
    pub(super) fn family(&mut self, name: &'static str, kind: &'static str, help: &'static str) {
        self.families.push(Family { name, kind, help, samples: Vec::new() });
    }

    /// Adds a number to the metric that was begun last.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&'static str, &str)], value: impl Into<Value>) {
        let labels = labels.iter().map(|(label, value)| (*label, (*value).to_owned())).collect();
        if let Some(family) = self.families.last_mut() {
            family.samples.push(Sample { name: format!("holdfast_{name}"), labels, value: value.into() });
        }
    }

    /// All metrics in the table of a status; each of `all` comes with its label, if there is more than one.
    pub(super) fn figures<T: Figures>(&mut self, all: &[(Option<(&'static str, &str)>, &T)]) {
        for family in metrics::<T>() {
            self.figure_family(&family, all);
        }
    }

    /// The same without the metric `left_out`.
    pub(super) fn figures_without<T: Figures>(&mut self, of: &T, left_out: &str) {
        for family in metrics::<T>() {
            if family.iter().all(|(metric, _)| metric.name != left_out) {
                self.figure_family(&family, &[(None, of)]);
            }
        }
    }

    fn figure_family<T>(
        &mut self,
        family: &[(Metric, &'static Figure<T>)],
        all: &[(Option<(&'static str, &str)>, &T)],
    ) {
        let Some((metric, figure)) = family.first() else { return };
        self.family(metric.name, metric.kind, figure.help());
        for (label, of) in all {
            for (metric, figure) in family {
                let labels: Vec<_> = label.iter().copied().chain(metric.label).collect();
                self.sample(metric.name, &labels, (figure.value)(of));
            }
        }
    }

    /// A metric of one number.
    pub(super) fn single(
        &mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        value: impl Into<Value>,
    ) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// Metrics of a table of figures, each with all figures that share it.
fn metrics<T: Figures>() -> Vec<Vec<(Metric, &'static Figure<T>)>> {
    let mut families: Vec<Vec<(Metric, &'static Figure<T>)>> = Vec::new();
    for figure in T::TABLE {
        let Some(metric) = figure.metric else { continue };
        match families.iter_mut().find(|family| family.iter().any(|(other, _)| other.name == metric.name)) {
            Some(family) => family.push((metric, figure)),
            None => families.push(vec![(metric, figure)]),
        }
    }
    families
}

/// A label's value with what the format wants escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

impl Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Family { name, kind, help, samples } in &self.families {
            writeln!(f, "# HELP holdfast_{name} {help}\n# TYPE holdfast_{name} {kind}")?;
            for sample in samples {
                write!(f, "{}{{ring=\"{}\"", sample.name, Escaped(&self.ring))?;
                for (label, value) in &sample.labels {
                    write!(f, ",{label}=\"{}\"", Escaped(value))?;
                }
                writeln!(f, "}} {}", sample.value)?;
            }
        }
        Ok(())
    }
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut page = to.serialize_struct("Page", 2)?;
        page.serialize_field("ring", &self.ring)?;
        page.serialize_field("metrics", &self.families)?;
        page.end()
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut family = to.serialize_struct("Family", 4)?;
        family.serialize_field("name", &format_args!("holdfast_{}", self.name))?;
        family.serialize_field("type", self.kind)?;
        family.serialize_field("help", self.help)?;
        family.serialize_field("samples", &self.samples)?;
        family.end()
    }
}

/// Labels as one object, in their order.
struct Labels<'a>(&'a [(&'static str, String)]);

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut labels = to.serialize_map(Some(self.0.len()))?;
        for (label, value) in self.0 {
            labels.serialize_entry(label, value)?;
        }
        labels.end()
    }
}

impl Serialize for Sample {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut sample = to.serialize_struct("Sample", 3)?;
        sample.serialize_field("name", &self.name)?;
        sample.serialize_field("labels", &Labels(&self.labels))?;
        sample.serialize_field("value", &self.value)?;
        sample.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_say_the_same() {
        let mut page = Page::new("lab \"one\"".to_owned());
        page.single("up", "gauge", "1 while up.", 1u8);
        page.family("took_seconds", "histogram", "How long.");
        page.sample("took_seconds_bucket", &[("lane", "a\\b\n"), ("le", "0.1")], u64::MAX);
        page.sample("took_seconds_sum", &[("lane", "a\\b\n")], 0.25);
        let text = r#"# HELP holdfast_up 1 while up.
# TYPE holdfast_up gauge
holdfast_up{ring="lab \"one\""} 1
# HELP holdfast_took_seconds How long.
# TYPE holdfast_took_seconds histogram
holdfast_took_seconds_bucket{ring="lab \"one\"",lane="a\\b\n",le="0.1"} 18446744073709551615
holdfast_took_seconds_sum{ring="lab \"one\"",lane="a\\b\n"} 0.25
"#;
        assert_eq!(page.to_string(), text);
        let json = r#"{"ring":"lab \"one\"","metrics":[{"name":"holdfast_up","type":"gauge","help":"1 while up.","samples":[{"name":"holdfast_up","labels":{},"value":1}]},{"name":"holdfast_took_seconds","type":"histogram","help":"How long.","samples":[{"name":"holdfast_took_seconds_bucket","labels":{"lane":"a\\b\n","le":"0.1"},"value":18446744073709551615},{"name":"holdfast_took_seconds_sum","labels":{"lane":"a\\b\n"},"value":0.25}]}]}"#;
        assert_eq!(serde_json::to_string(&page).unwrap(), json);
    }
}
