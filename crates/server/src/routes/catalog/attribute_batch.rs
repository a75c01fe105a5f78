//! Changes of the attributes of many entries in one request: all are made in one transaction, or none.
//!
//! An error names the place of its entry in the request, so that an import can name the line of its file.

use super::body::{AttributeBatch, BatchBody, EntryChanges, NewAttribute};
use super::{MOST_ATTRIBUTES, MOST_ENTRIES, problem, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::extract::read_value;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use axum::extract::State;
use axum::{Extension, Json};
use holdfast_catalog::{Attribute, AttributeChange, Catalog, CatalogError, CatalogPath, FailedChange};
use std::sync::Arc;

/// Most attributes and removed names of one request: bounds the time for which other requests wait for the catalog.
const MOST_BATCH_ATTRIBUTES: usize = 20_000;

/// Changes of the attributes of up to 1000 entries, in their order: all or none.
///
/// Each entry loses the attributes with the names of `remove`, and gets those of `add`. An entry that has these attributes
/// already is left as it is, so that a repeated request changes nothing. The member `entry` of a problem is the place of
/// its entry, counted from 0.
#[utoipa::path(post, path = "/catalog/attributes/batch", tag = "catalog", request_body = AttributeBatch,
    responses((status = 200, body = BatchBody), (status = 400, description = "An attribute is not allowed"),
        (status = 403, description = "The token does not allow the change of one of the entries"),
        (status = 404, description = "One of the entries does not exist")))]
pub(crate) async fn change_many(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Json(batch): Json<AttributeBatch>,
) -> Result<Json<BatchBody>, Problem> {
    let entries = batch.entries.len();
    let attributes = batch.entries.iter().map(|entry| entry.add.len() + entry.remove.len()).sum::<usize>();
    if entries > MOST_ENTRIES || attributes > MOST_BATCH_ATTRIBUTES {
        let detail = format_args!(
            "cannot change the attributes: {entries} entries with {attributes} attributes and removed names are more than \
             {MOST_ENTRIES} with {MOST_BATCH_ATTRIBUTES}; send several requests"
        );
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let changes = batch.entries.into_iter().enumerate();
    let changes = changes.map(|(place, entry)| read_change(entry).map_err(|problem| problem.at_entry(place)));
    let changes: Vec<AttributeChange> = changes.collect::<Result<_, _>>()?;
    authorize_all(&app, &access, &changes).await?;
    let action = "change the attributes";
    let change = move |catalog: &mut Catalog<_>| match catalog.change_attributes_all(&changes) {
        // The store may have to be opened again.
        Err(FailedChange { error: error @ CatalogError::Store(_), .. }) => Err(error),
        done => Ok(done),
    };
    match with(&app, action, change).await? {
        Ok(count) => Ok(Json(BatchBody { entries: entries as u64, changed: count as u64 })),
        Err(FailedChange { place, error }) => {
            let problem = problem(action, &error);
            Err(place.into_iter().fold(problem, Problem::at_entry))
        }
    }
}

/// Change of one entry of a request, with a path below a project.
fn read_change(entry: EntryChanges) -> Result<AttributeChange, Problem> {
    let path: CatalogPath = entry.path.parse().map_err(|error| Problem::new(ProblemKind::BadName, error))?;
    let project = path.components().first().map(|project| ProjectName::parse(project)).transpose();
    project.map_err(|error| Problem::name("use the path", &error))?;
    Ok(AttributeChange { path, replaced: entry.remove, attributes: read_attributes(entry.add)? })
}

/// Attributes of a request that are added to one entry.
pub(super) fn read_attributes(added: Vec<NewAttribute>) -> Result<Vec<Attribute>, Problem> {
    if added.len() > MOST_ATTRIBUTES {
        let detail = "cannot change the attributes: more than 1000 are added at once; send several requests";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let added = added.into_iter().map(|new| {
        let Some(value) = read_value(&new.value) else {
            let (name, reason) = (new.name.escape_debug(), "its value is no string, number or boolean");
            let detail = format_args!("cannot add the attribute '{name}': {reason}; send one of these");
            return Err(Problem::new(ProblemKind::BadRequest, detail));
        };
        Ok(Attribute { name: new.name, value, unit: new.unit })
    });
    added.collect()
}

/// Requires scope and rights for a change of each entry. The targets of links are read together.
async fn authorize_all(app: &App, access: &Access, changes: &[AttributeChange]) -> Result<(), Problem> {
    let paths: Vec<CatalogPath> = changes.iter().map(|change| change.path.clone()).collect();
    let targets = match access.limits() {
        Some(_) => {
            let find = move |catalog: &mut Catalog<_>| {
                paths.iter().map(|path| catalog.link_target(path)).collect::<Result<Vec<_>, _>>()
            };
            with(app, "find the entries", find).await?
        }
        None => vec![None; paths.len()],
    };
    for (place, (change, target)) in changes.iter().zip(&targets).enumerate() {
        let allowed = access.require_on(Verb::Change, &change.path, target.as_ref());
        allowed.map_err(|problem| problem.at_entry(place))?;
    }
    Ok(())
}
