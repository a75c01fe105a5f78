//! Parts of the bench of shipping: a proxy with the rate and latency of a link, a site, a shipper, and its peers.
//! Not here: cases and their tables (`cases/ship.rs`), and links for packets (`link.rs`).

pub mod archive_site;
pub mod peers;
pub mod shaped_proxy;
pub mod stand;
