//! The bar that shows how far something long is, drawn only where a person looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over `bytes`; one that is never drawn unless `shown`.
pub(crate) fn bar(bytes: u64, shown: bool) -> ProgressBar {
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(bytes), target);
    let style = ProgressStyle::with_template(
        "{bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A count for work of which the end is not known.
pub(crate) fn count() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {msg} {binary_bytes} {binary_bytes_per_sec}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Parts of a bar that shows a share of something.
const PARTS: u64 = 1000;

/// A bar for work of which only the share is known that is done.
pub(crate) fn share() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(PARTS), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Shows how much is done, from 0 to 1, and what is to be said beside it.
pub(crate) fn show_share(bar: &ProgressBar, part: f64, said: String) {
    bar.set_position((part.clamp(0.0, 1.0) * PARTS as f64) as u64);
    bar.set_message(said);
}
