//! Work of the commands for a site: sessions, paths, uploads that resume, verified downloads, and the notation of attributes.
//! Requests are in the crate `remote`; arguments and printing are in `commands`.

mod attribute_text;
mod download;
mod path;
mod resume_mark;
mod retry;
mod session;
mod show;
mod upload;
mod upload_stream;

pub(crate) use attribute_text::AttributeText;
pub(crate) use download::{Download, Received};
pub(crate) use path::SitePath;
pub(crate) use session::{Session, failure};
pub(crate) use show::{EntryView, attribute, stat, stored, upload};
pub(crate) use upload::{Sent, Upload};
