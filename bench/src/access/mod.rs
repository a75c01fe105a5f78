//! Parts of the bench of mounts: views of remote files (mounts and shells of Holdfast, mounts of other programs) and the paper's
//! figures. Not here: the tables of the case (`cases/mount.rs`), and the link (`shipping`).

pub mod paper;
pub mod s3;
pub mod view;
