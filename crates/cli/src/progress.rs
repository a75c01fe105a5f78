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
