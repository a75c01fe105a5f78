//! Binding of each folder tree to its destination, checked against the delivered state that the ledger has.

use crate::ledger::{Binding, Destination, Ledger};
use crate::settings::Settings;
use crate::shipper::files::Folder;
use crate::shipper::{ShipError, Status};

/// Names the folder trees of the ledger and binds them to their destinations, all or none.
///
/// A tree whose sent files belong to another destination is refused: they would count as delivered there. A tree whose files
/// are removed after their delivery is bound again instead, because no file that is left in it was delivered.
pub(super) fn bind(
    ledger: &mut Ledger,
    settings: &Settings,
    url: &str,
    folders: &mut [Folder],
) -> Result<(), ShipError> {
    let names = (0..folders.len()).map(|number| name(ledger, folders, number));
    let names = names.collect::<Result<Vec<_>, ShipError>>()?;
    let mut bindings = Vec::new();
    for (folder, name) in folders.iter().zip(&names) {
        let wanted = Destination {
            url: url.to_owned(),
            project: settings.archive.project.clone(),
            into: folder.into.clone(),
        };
        let recorded = ledger.destination(name)?;
        let known = if !ledger.has_sent_files(name)? {
            None
        } else if recorded.is_some() {
            recorded.clone()
        } else if folders.iter().filter(|other| other.root == folder.root).count() == 1 {
            earlier(settings, &wanted)
        } else {
            // Nothing tells which of its destinations an earlier program sent a file to.
            None
        };
        let is_kept = known.as_ref() == Some(&wanted);
        if let Some(known) = known
            && !is_kept
            && !folder.removes
        {
            let (state, root) = (settings.state.folder.display(), folder.root.display());
            return Err(ShipError(format!(
                "cannot ship {root} to {wanted}: the state in {state} is that of its delivery to {known}; take another \
                 state folder (`--state`, or `folder` in [state]) to send every file there, or the former destination"
            )));
        }
        if recorded.as_ref() != Some(&wanted) {
            bindings.push(Binding { folder: name.clone(), destination: wanted, keeps_files: is_kept });
        }
    }
    if !bindings.is_empty() {
        ledger.bind(&bindings)?;
    }
    for (folder, name) in folders.iter_mut().zip(names) {
        folder.name = name;
    }
    Ok(())
}

/// Name of a folder tree in the ledger: its root, and also its `into` if another table with this root has the plain name.
fn name(ledger: &Ledger, folders: &[Folder], number: usize) -> Result<String, ShipError> {
    let folder = &folders[number];
    let (plain, long) = (folder.name.clone(), format!("{}//{}", folder.name, folder.into));
    let is_same = |other: &Folder| other.root == folder.root;
    let has_plain = match ledger.destination(&plain)? {
        _ if folders.iter().filter(|other| is_same(other)).count() == 1 => true,
        Some(known) => known.into == folder.into,
        None => folders.iter().position(is_same) == Some(number),
    };
    let is_long = !has_plain || ledger.destination(&long)?.is_some();
    Ok(if is_long { long } else { plain })
}

/// Destination of state that a program without destinations wrote, by its status file; `None` if no status can be read.
fn earlier(settings: &Settings, wanted: &Destination) -> Option<Destination> {
    let status = Status::read(&settings.state.folder).ok()?;
    let is_same = |a: &str, b: &str| a.trim_end_matches('/') == b.trim_end_matches('/');
    let url =
        if is_same(&status.archive, &settings.archive.url) { wanted.url.clone() } else { status.archive };
    Some(Destination { url, project: status.project, into: wanted.into.clone() })
}
