//! Work of the commands for a site: sessions, paths, uploads that resume, verified downloads, and the notation of attributes.
//! Requests are in the crate `remote`; arguments and printing are in `commands`.

mod attribute_text;
mod download;
mod kept_token;
mod listing;
mod metadata_import;
mod password_prompt;
mod path;
mod resume_mark;
mod retry;
mod session;
mod show;
mod target;
mod upload;
mod upload_stream;

pub(crate) use attribute_text::AttributeText;
pub(crate) use download::{Download, Received};
pub(crate) use kept_token::KeptToken;
pub(crate) use listing::{each_entry, each_match};
pub(crate) use metadata_import::{ImportRules, MetadataImport};
pub(crate) use password_prompt::{ask_new_password, ask_password};
pub(crate) use path::SitePath;
pub(crate) use session::{Session, failure};
pub(crate) use show::{EntryView, attribute, kind_name, site_name, stat, stored, upload};
pub(crate) use target::Target;
pub(crate) use upload::{Sent, Upload};
