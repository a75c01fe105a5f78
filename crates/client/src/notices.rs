//! Notices: what a library has to tell people beside its results, such as a device that keeps an order waiting.

use std::fmt;
use std::sync::Arc;

type Tell = dyn Fn(&str) + Send + Sync;

/// Receiver of notices, which may come from any thread. The default one drops them.
#[derive(Clone, Default)]
pub struct Notices(Option<Arc<Tell>>);

impl Notices {
    /// Passes every notice to `tell`.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Passes on a notice.
    pub fn tell(&self, notice: impl fmt::Display) {
        if let Some(tell) = &self.0 {
            tell(&notice.to_string());
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notices").field(&self.0.is_some()).finish()
    }
}
