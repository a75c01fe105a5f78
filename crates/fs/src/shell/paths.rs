//! Paths of calls: whether they lead into the tree, by their text alone.

use rustix::io::Errno;
use std::path::PathBuf;

/// Names on the way from the root of the tree to an entry.
pub(super) type Names = Vec<String>;

/// Place to which a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Entry of the machine, as the kernel finds it.
    Outside,
    /// Entry of the machine whose path began in the tree: the kernel would look in the wrong folder.
    Left(PathBuf),
    /// Entry of the tree.
    Inside(Names),
}

/// Finds the place of a path. `base` is the folder in the tree that it is relative to; `prefix` are the names of the tree's own
/// place. As in the tree there are no symbolic links, `..` is taken by its text.
pub(super) fn place(prefix: &[String], base: Option<&[String]>, path: &[u8]) -> Result<Place, Errno> {
    let is_absolute = path.starts_with(b"/");
    let mut names: Vec<&[u8]> = match base.filter(|_| !is_absolute) {
        Some(base) => prefix.iter().chain(base).map(String::as_bytes).collect(),
        None if is_absolute => Vec::new(),
        None => return Ok(Place::Outside),
    };
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let is_inside = names.len() >= prefix.len()
        && names.iter().zip(prefix).all(|(name, of_prefix)| *name == of_prefix.as_bytes());
    if is_inside {
        let text = |name: &&[u8]| String::from_utf8(name.to_vec()).map_err(|_| Errno::ILSEQ);
        return names[prefix.len()..].iter().map(text).collect::<Result<_, _>>().map(Place::Inside);
    }
    if is_absolute {
        return Ok(Place::Outside);
    }
    let text = names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join("/");
    Ok(Place::Left(PathBuf::from(format!("/{text}"))))
}

/// Number of the descriptor that a path of `/proc` or `/dev` stands for.
pub(super) fn descriptor(path: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(path).ok()?;
    let (folder, number) = text.rsplit_once('/')?;
    let is_of_process = folder == "/dev/fd" || (folder.starts_with("/proc/") && folder.ends_with("/fd"));
    number.parse().ok().filter(|_| is_of_process)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: Option<&[&str]>, path: &str) -> Place {
        let prefix = ["hf".to_owned()];
        let base: Option<Names> = base.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        place(&prefix, base.as_deref(), path.as_bytes()).unwrap()
    }

    fn inside(names: &[&str]) -> Place {
        Place::Inside(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn absolute_paths_lead_into_the_tree_by_their_beginning() {
        assert_eq!(at(None, "/hf"), inside(&[]));
        assert_eq!(at(None, "/hf/lab//a/./b/"), inside(&["lab", "a", "b"]));
        assert_eq!(at(None, "/hfs/lab"), Place::Outside);
        assert_eq!(at(None, "/usr/../hf/lab"), inside(&["lab"]));
        assert_eq!(at(None, "/hf/../etc/passwd"), Place::Outside);
    }

    #[test]
    fn relative_paths_start_at_a_folder_of_the_tree() {
        assert_eq!(at(None, "a"), Place::Outside);
        assert_eq!(at(Some(&["lab"]), "a/../b"), inside(&["lab", "b"]));
        assert_eq!(at(Some(&["lab"]), ".."), inside(&[]));
        assert_eq!(at(Some(&["lab"]), "../../etc/passwd"), Place::Left("/etc/passwd".into()));
        assert_eq!(at(Some(&[]), "/etc/passwd"), Place::Outside);
    }

    #[test]
    fn paths_of_descriptors_are_seen() {
        assert_eq!(descriptor(b"/proc/self/fd/600"), Some(600));
        assert_eq!(descriptor(b"/dev/fd/3"), Some(3));
        assert_eq!(descriptor(b"/tmp/fd/3"), None);
    }
}
