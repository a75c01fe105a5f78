//! Check of the destination of each folder tree against that of its delivered state.

use crate::ledger::{Destination, Ledger};
use crate::settings::Settings;
use crate::shipper::files::Folder;
use crate::shipper::{ShipError, Status};

/// Refuses a folder tree whose delivered state belongs to another destination: its files would count as delivered there.
pub(super) fn check(
    ledger: &mut Ledger,
    settings: &Settings,
    url: &str,
    folders: &[Folder],
) -> Result<(), ShipError> {
    for folder in folders {
        let wanted = Destination {
            url: url.to_owned(),
            project: settings.archive.project.clone(),
            into: folder.into.clone(),
        };
        let known = match ledger.destination(&folder.name)? {
            Some(known) => Some(known),
            None => earlier(ledger, settings, &wanted, &folder.name)?,
        };
        match known {
            Some(known) if known != wanted => {
                let (state, name) = (settings.state.folder.display(), &folder.name);
                return Err(ShipError(format!(
                    "cannot ship {name} to {wanted}: the state in {state} is that of its delivery to {known}; take another \
                     state folder (`--state`, or `folder` in [state]) to send every file there, or the former destination"
                )));
            }
            Some(_) => {}
            None => ledger.set_destination(&folder.name, &wanted)?,
        }
    }
    Ok(())
}

/// Destination of state that a program without destinations wrote, by its status file.
fn earlier(
    ledger: &mut Ledger,
    settings: &Settings,
    wanted: &Destination,
    folder: &str,
) -> Result<Option<Destination>, ShipError> {
    if !ledger.has_files(folder)? {
        return Ok(None);
    }
    let Ok(status) = Status::read(&settings.state.folder) else { return Ok(None) };
    let is_same = |a: &str, b: &str| a.trim_end_matches('/') == b.trim_end_matches('/');
    let url =
        if is_same(&status.archive, &settings.archive.url) { wanted.url.clone() } else { status.archive };
    let known = Destination { url, project: status.project, into: wanted.into.clone() };
    ledger.set_destination(folder, &known)?;
    Ok(Some(known))
}
