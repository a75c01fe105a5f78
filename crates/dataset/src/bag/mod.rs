//! ROS 1 bags (version 2.0): read chunk by chunk, and converted to MCAP files.
//!
//! Here belong the records of a bag and their checks, and the channels, schemas and messages that they become. Not here:
//! the MCAP file itself (`mcap_writer`), and the contents of ROS messages, which are copied unseen.

mod convert;
mod reader;
mod record;

pub use convert::{BagConversion, ConvertedBag, convert_bag};
pub use reader::is_bag;
