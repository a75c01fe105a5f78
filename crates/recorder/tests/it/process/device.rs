//! Failing devices made of loop devices: each is removed by its own name, whatever the test does. Needs root; where a
//! part is not available the reason is printed and the test ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a tool says, or `None` when it fails or is not there.
pub(crate) fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(name).args(arguments).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A loop device.
#[derive(Debug)]
pub(crate) struct Loop(String);

impl Loop {
    pub(crate) fn over(file: &Path) -> Option<Self> {
        Self::with("--partscan", file)
    }

    /// Past the page cache of the file below.
    pub(crate) fn direct(file: &Path) -> Option<Self> {
        Self::with("--direct-io=on", file)
    }

    fn with(option: &str, file: &Path) -> Option<Self> {
        let made = tool("losetup", &[option, "--find", "--show", file.to_str()?]);
        if made.is_none() {
            println!("skipped: no loop device can be made (needs root, losetup and a free /dev/loopN)");
        }
        let made = made?;
        // One whose last user was killed while it was locked stays so.
        tool("blockdev", &["--setrw", &made]);
        Some(Self(made))
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        tool("losetup", &["--detach", &self.0]);
    }
}

/// A device that answers everything with an I/O error when told to: a loop device over the partition of another, which
/// is made too small for all of it.
#[derive(Debug)]
pub(crate) struct Frail {
    pub(crate) device: Loop,
    below: Loop,
    sectors: String,
}

impl Frail {
    /// Over a file, of which it takes all.
    pub(crate) fn over(file: &Path) -> Option<Self> {
        let below = Loop::over(file)?;
        let sectors = (std::fs::metadata(file).ok()?.len() / 512).to_string();
        let partition = format!("{}p1", below.0);
        if tool("addpart", &[&below.0, "1", "0", &sectors]).is_none() || !Path::new(&partition).exists() {
            println!("skipped: no partition can be added to a loop device (needs addpart, and devtmpfs)");
            return None;
        }
        // Through a page cache a write that is cut short in the middle would count as done.
        Some(Self { device: Loop::direct(Path::new(&partition))?, below, sectors })
    }

    /// From here on every request fails.
    pub(crate) fn fail(&self) {
        tool("resizepart", &[&self.below.0, "1", "8"]).expect("resizepart");
    }

    /// It answers again.
    pub(crate) fn heal(&self) {
        tool("resizepart", &[&self.below.0, "1", &self.sectors]).expect("resizepart");
    }
}

/// A device whose writes are refused when told to, and whose reads go on: one that became read-only.
#[derive(Debug)]
pub(crate) struct Lockable(pub(crate) Loop);

impl Lockable {
    pub(crate) fn over(file: &Path) -> Option<Self> {
        tool("blockdev", &["--version"])?;
        Some(Self(Loop::over(file)?))
    }

    pub(crate) fn lock(&self) {
        tool("blockdev", &["--setro", &self.0.0]).expect("blockdev");
    }

    pub(crate) fn unlock(&self) {
        tool("blockdev", &["--setrw", &self.0.0]).expect("blockdev");
    }
}

impl Drop for Lockable {
    fn drop(&mut self) {
        // Whoever gets this loop device next would find it read-only.
        tool("blockdev", &["--setrw", &self.0.0]);
    }
}

/// A device that stops answering writes when told to, without an error: a loop device over a file on a file system
/// that can be frozen.
#[derive(Debug)]
pub(crate) struct Freezing {
    device: Option<Loop>,
    mount: String,
    below: Option<Loop>,
    frozen: std::cell::Cell<bool>,
}

impl Freezing {
    /// Of `bytes`, in `folder`; its content is what `fill` writes.
    pub(crate) fn with(folder: &Path, ring: &Path) -> Option<Self> {
        let bytes = std::fs::metadata(ring).ok()?.len();
        let file = folder.join("freezing");
        std::fs::File::create(&file).ok()?.set_len(bytes * 2 + (16 << 20)).ok()?;
        let mount = folder.join("frozen");
        std::fs::create_dir(&mount).ok()?;
        let mount = mount.to_str()?.to_owned();
        let below = Loop::over(&file)?;
        if tool("mkfs.ext4", &["-q", "-F", &below.0]).is_none()
            || tool("mount", &[&below.0, &mount]).is_none()
        {
            println!("skipped: no ext4 can be made and mounted here");
            return None;
        }
        let mut this = Self { device: None, mount, below: Some(below), frozen: std::cell::Cell::new(false) };
        let inner = Path::new(&this.mount).join("ring");
        std::fs::copy(ring, &inner).ok()?;
        this.device = Some(Loop::over(&inner)?);
        Some(this)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.device.as_ref().map(Loop::path).unwrap_or_default()
    }

    pub(crate) fn freeze(&self) {
        tool("fsfreeze", &["--freeze", &self.mount]).expect("fsfreeze");
        self.frozen.set(true);
    }

    pub(crate) fn thaw(&self) {
        if self.frozen.replace(false) {
            tool("fsfreeze", &["--unfreeze", &self.mount]);
        }
    }
}

impl Drop for Freezing {
    fn drop(&mut self) {
        self.thaw();
        self.device = None;
        // The loop device lets go of its file a moment after its last user: the mount goes when that has.
        tool("umount", &["--lazy", &self.mount]);
        self.below = None;
    }
}
