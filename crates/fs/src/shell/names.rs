//! Calls on paths of the tree.

use super::calls::{Act, PairAct};
use super::layout::{Status, space};
use super::opened::OpenedKind;
use super::paths::Names;
use super::sys::{Answer, Call, Gift};
use super::{Answered, CONTINUE, DONE, Found, Supervisor, Work};
use crate::file_system::{Attributes, FileKind, ROOT, is_kept};
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// Longest name of an extended attribute.
const MOST_NAME: usize = 255;

/// True for the mode of a folder.
pub(super) fn is_folder(mode: u32) -> bool {
    mode & libc::S_IFMT == libc::S_IFDIR
}

/// Longest value of an extended attribute.
const MOST_VALUE: u64 = 65_536;

impl Supervisor {
    /// Work of a path outside of the tree.
    pub(super) fn outside(&self, call: &Call, act: Act) -> Work {
        match act {
            Act::Enter if self.current(call).is_some() => {
                // The kernel tells an error itself: the current folder stays.
                let path = call.text(call.arguments[0]).unwrap_or_default();
                let is_enterable = rustix::fs::access(&*path, Access::EXEC_OK).is_ok()
                    && rustix::fs::stat(&*path).is_ok_and(|found| is_folder(found.st_mode));
                if is_enterable { Work::Leave } else { Work::Kernel }
            }
            Act::Refuse => {
                // A program that begins gets its mark back, if it was closed.
                if let Some(names) = self.closed_mark(call) {
                    return Work::Restore(names);
                }
                Work::Kernel
            }
            _ => Work::Kernel,
        }
    }

    /// Attributes of the entry with some names.
    pub(super) async fn walk(&self, names: &[String]) -> Result<Attributes, Errno> {
        Ok(self.walk_along(names).await?.0)
    }

    /// Attributes of the entry with some names, and the numbers of all entries on the way.
    pub(super) async fn walk_along(&self, names: &[String]) -> Result<(Attributes, Vec<u64>), Errno> {
        let mut found = self.fs.attributes(ROOT).await?;
        let mut way = Vec::new();
        for name in names {
            if found.kind != FileKind::Directory {
                return Err(Errno::NOTDIR);
            }
            found = self.fs.lookup(found.ino, name).await?;
            way.push(found.ino);
            self.opened.refer(found.ino, |ino| self.fs.forget(ino, 1));
        }
        Ok((found, way))
    }

    /// Folder of an entry, and its name there.
    pub(super) async fn parent<'a>(&self, names: &'a [String]) -> Result<(u64, &'a str), Errno> {
        let (name, above) = names.split_last().ok_or(Errno::BUSY)?;
        let folder = self.walk(above).await?;
        if folder.kind == FileKind::Directory { Ok((folder.ino, name)) } else { Err(Errno::NOTDIR) }
    }

    fn status(&self, found: &Attributes) -> Status {
        let is_folder = found.kind == FileKind::Directory;
        Status::of(found.ino, is_folder, found.size, found.modified, self.fs.options().read_only)
    }

    pub(super) async fn path(&self, call: &Call, found: Found, act: Act) -> Answered {
        let names = match found {
            Found::Outside => return CONTINUE,
            Found::Left(path) => return self.left(call, &path, act),
            Found::Inside(names) => names,
            Found::Open(opened) => {
                let ino = opened.ino;
                return self.entry(call, self.fs.attributes(ino).await?, act).await;
            }
            Found::Alias(opened) => {
                if let OpenedKind::Reader(_) = opened.kind {
                    self.fill(&opened).await?;
                }
                return CONTINUE;
            }
        };
        let argument = |at: usize| call.arguments[at];
        match act {
            Act::Open { flags } => self.open(call, names, argument(flags) as u32).await,
            Act::Create => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                self.open(call, names, flags.bits()).await
            }
            Act::OpenHow { how } => {
                let flags = call.bytes(argument(how), 4)?;
                let flags = u32::from_ne_bytes([flags[0], flags[1], flags[2], flags[3]]);
                self.open(call, names, flags).await
            }
            Act::Enter => self.enter(call, names).await,
            Act::MakeFolder => {
                if self.walk(&names).await.is_ok() {
                    return Err(Errno::EXIST);
                }
                let (parent, name) = self.parent(&names).await?;
                let made = self.fs.make_directory(parent, name).await?;
                self.fs.forget(made.ino, 1);
                DONE
            }
            Act::RemoveFolder => self.remove_folder(&names).await,
            Act::UnlinkAt { flags } if argument(flags) as u32 & AtFlags::REMOVEDIR.bits() != 0 => {
                self.remove_folder(&names).await
            }
            Act::Unlink | Act::UnlinkAt { .. } => self.unlink(&names).await,
            // Programs lie in real folders; symbolic links and devices do not exist here.
            Act::Refuse => match self.walk(&names).await {
                Ok(_) => Err(Errno::ACCESS),
                Err(Errno::NOENT) => Err(Errno::PERM),
                Err(errno) => Err(errno),
            },
            act => {
                let found = self.walk(&names).await?;
                self.entry(call, found, act).await
            }
        }
    }

    /// Acts on an entry that is there.
    async fn entry(&self, call: &Call, found: Attributes, act: Act) -> Answered {
        let argument = |at: usize| call.arguments[at];
        match act {
            Act::Stat { to } => call.put(argument(to), &self.status(&found).stat())?,
            Act::Statx => call.put(argument(4), &self.status(&found).statx())?,
            Act::Access { mode } => {
                let wants_write = argument(mode) as u32 & Access::WRITE_OK.bits() != 0;
                if wants_write && self.fs.options().read_only {
                    return Err(Errno::ROFS);
                }
            }
            Act::SetSize { size } => drop(self.fs.set_size(found.ino, argument(size)).await?),
            Act::Forgotten => {}
            Act::Space { to } => call.put(argument(to), &space())?,
            Act::GetAttribute => return self.get_attribute(call, found.ino).await,
            Act::SetAttribute => return self.set_attribute(call, found.ino).await,
            Act::ListAttributes => return self.list_attributes(call, found.ino).await,
            Act::RemoveAttribute => return self.remove_attribute(call, found.ino).await,
            // There are no symbolic links to be read.
            _ => return Err(Errno::INVAL),
        }
        DONE
    }

    /// Acts on an entry of the machine to which a path leads from within the tree.
    fn left(&self, call: &Call, path: &Path, act: Act) -> Answered {
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let argument = |at: usize| call.arguments[at];
        match act {
            Act::Open { flags } => {
                let flags = OFlags::from_bits_retain(argument(flags) as u32);
                let mode = Mode::from_raw_mode(argument(3) as u32);
                let file = rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?;
                let gift = if flags.contains(OFlags::CLOEXEC) { Gift::CloseOnExec } else { Gift::Kept };
                self.listener.give(call, rustix::fd::AsFd::as_fd(&file), None, gift).map_err(io)?;
                Ok(None)
            }
            Act::Stat { to } => {
                call.put(argument(to), &Status::real(&path.metadata().map_err(io)?).stat())?;
                DONE
            }
            Act::Statx => {
                call.put(argument(4), &Status::real(&path.metadata().map_err(io)?).statx())?;
                DONE
            }
            Act::Access { .. } => path.metadata().map_err(io).map(|_| Some(Answer::Value(0))),
            _ => Err(Errno::XDEV),
        }
    }

    pub(super) async fn pair(&self, call: &Call, old: &Names, new: &Names, act: PairAct) -> Answered {
        let to = self.parent(new).await?;
        match act {
            PairAct::Rename { flags } => {
                let flags = flags.map_or(0, |at| call.arguments[at] as u32);
                if flags & !libc::RENAME_NOREPLACE != 0 {
                    return Err(Errno::INVAL);
                }
                self.fs.rename(self.parent(old).await?, to, flags != 0).await?;
            }
            // A link of the catalog ends with its target.
            PairAct::Link => return Err(Errno::PERM),
        }
        DONE
    }

    async fn unlink(&self, names: &[String]) -> Answered {
        if self.walk(names).await?.kind == FileKind::Directory {
            return Err(Errno::ISDIR);
        }
        let (parent, name) = self.parent(names).await?;
        self.fs.unlink(parent, name).await?;
        DONE
    }

    async fn remove_folder(&self, names: &[String]) -> Answered {
        let (parent, name) = self.parent(names).await?;
        self.fs.remove_directory(parent, name).await?;
        DONE
    }

    fn attribute_name(call: &Call) -> Result<String, Errno> {
        let name = String::from_utf8(call.text(call.arguments[1])?).map_err(|_| Errno::ILSEQ)?;
        if name.len() > MOST_NAME { Err(Errno::RANGE) } else { Ok(name) }
    }

    /// Refuses access control lists and labels before their values are looked at.
    fn check_attribute(name: &str) -> Result<(), Errno> {
        if is_kept(name) { Ok(()) } else { Err(Errno::OPNOTSUPP) }
    }

    pub(super) async fn get_attribute(&self, call: &Call, ino: u64) -> Answered {
        let name = Self::attribute_name(call)?;
        Self::check_attribute(&name)?;
        let value = self.fs.attribute(ino, &name).await?;
        Self::give_value(call, (call.arguments[2], call.arguments[3]), value.as_bytes())
    }

    pub(super) async fn list_attributes(&self, call: &Call, ino: u64) -> Answered {
        let names = self.fs.list_attributes(ino).await?;
        let all: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
        Self::give_value(call, (call.arguments[1], call.arguments[2]), &all)
    }

    /// Answers with a value, or with its length if that is asked for.
    fn give_value(call: &Call, (address, size): (u64, u64), value: &[u8]) -> Answered {
        if size > 0 {
            if value.len() as u64 > size {
                return Err(Errno::RANGE);
            }
            call.put(address, value)?;
        }
        Ok(Some(Answer::Value(value.len() as i64)))
    }

    pub(super) async fn set_attribute(&self, call: &Call, ino: u64) -> Answered {
        let name = Self::attribute_name(call)?;
        Self::check_attribute(&name)?;
        let length = call.arguments[3];
        if length > MOST_VALUE {
            return Err(Errno::TOOBIG);
        }
        let value = call.bytes(call.arguments[2], length as usize)?;
        let value = String::from_utf8(value).map_err(|_| Errno::ILSEQ)?;
        self.fs.set_attribute(ino, &name, Some(&value)).await?;
        DONE
    }

    pub(super) async fn remove_attribute(&self, call: &Call, ino: u64) -> Answered {
        let name = Self::attribute_name(call)?;
        Self::check_attribute(&name)?;
        self.fs.set_attribute(ino, &name, None).await?;
        DONE
    }
}
