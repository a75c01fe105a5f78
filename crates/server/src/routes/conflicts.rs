//! Conflicts between sites: those that are recorded, equal names, and refused moves; and their settlement.

use super::catalog::{allowed, with};
use crate::access::Access;
use crate::app::App;
use crate::authorization::Verb;
use crate::object_path::ProjectName;
use crate::problem::{Problem, ProblemKind};
use crate::replication::SiteNames;
use crate::site::{AnyStore, version_of};
use crate::token::Scope;
use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use holdfast_catalog::{
    Catalog, CatalogError, CatalogPath, Choice, ConflictId, ConflictState, DisputeKind, Hlc, Node, ObjectId,
    RecordedConflict, Result, WrittenValue,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Most conflicts of one answer.
const MOST: usize = 1000;

/// Prefix of the id of an entry that is shown under a number.
const SAME_NAME: &str = "same-";

/// Prefix of the id of a move that has no effect.
const CYCLE: &str = "cycle-";

/// Group of conflicts that is listed.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Group {
    /// Two writes of one name or of one object's contents.
    #[default]
    Recorded,
    /// Entries that are shown under a number, as an earlier one has their name.
    Names,
    /// Moves without effect, as they would have put a collection below itself.
    Moves,
}

/// Part of the list of conflicts.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConflictChoice {
    /// Group of conflicts: `recorded`, `names` or `moves`.
    #[serde(default)]
    group: Group,
    /// Value of `next` of the answer before.
    after: Option<String>,
}

/// One of the two writes of a conflict.
#[derive(Serialize, ToSchema)]
pub(crate) struct WriteBody {
    /// Site that wrote, in hexadecimal digits.
    site: String,
    /// Name of the site, or else its identity.
    site_name: String,
    /// Time of the write, in milliseconds since 1970.
    time: u64,
    /// Path or version that was written, null if it is gone.
    value: Option<String>,
}

/// Conflict between changes of several sites.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConflictBody {
    /// Identity of the conflict, the same at all sites.
    id: String,
    /// Kind: `name`, `contents`, `same_name` or `cycle`.
    kind: &'static str,
    /// Identity of the entry.
    object: String,
    /// Path of the entry, null if it lies in the trash.
    path: Option<String>,
    /// Earlier write, the one that lost.
    lost: WriteBody,
    /// Later write, the one that won; null for a refused move.
    won: Option<WriteBody>,
    /// Time at which this site learned of the conflict, in milliseconds since 1970.
    noted: Option<u64>,
    /// State: `open`, `settled` or `final`.
    state: &'static str,
    /// End of the time for settling it, in milliseconds since 1970; null without a limit.
    until: Option<u64>,
    /// Decision of a settled conflict: `keep` or `flip`.
    choice: Option<&'static str>,
}

/// Page of the list of conflicts.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConflictPage {
    /// Conflicts of this answer.
    conflicts: Vec<ConflictBody>,
    /// Value of `after` for the next answer, null if there is none.
    next: Option<String>,
}

/// Settlement of a conflict.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettlementBody {
    /// Decision that is taken.
    choice: ChoiceBody,
}

/// Decision between the two writes of a conflict.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChoiceBody {
    /// Keeps what is shown now, for good.
    Keep,
    /// Takes the write that lost.
    Flip,
}

/// Conflicts of a group.
#[utoipa::path(get, path = "/conflicts", tag = "replication", params(ConflictChoice),
    responses((status = 200, body = ConflictPage), (status = 400, description = "The page cannot be read")))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Query(choice): Query<ConflictChoice>,
) -> Result<Json<ConflictPage>, Problem> {
    access.require(&[Scope::Read], access.own_project())?;
    let after = After::read(choice.group, choice.after.as_deref())?;
    let mut page = with(&app, "list the conflicts", move |catalog| page(catalog, after)).await?;
    if let Some(project) = access.own_project() {
        page.conflicts.retain(|conflict| is_in(project, conflict.path.as_deref()));
    }
    if access.limits().is_some() {
        let read = |path: &str| path.parse().is_ok_and(|path| access.can_read(&path));
        page.conflicts.retain(|conflict| conflict.path.as_deref().is_some_and(read));
        for conflict in &mut page.conflicts {
            // A write may have named a place that the account may not read.
            for write in [Some(&mut conflict.lost), conflict.won.as_mut()].into_iter().flatten() {
                write.value.take_if(|value| value.starts_with('/') && !read(value));
            }
        }
    }
    Ok(Json(page))
}

fn is_in(project: &ProjectName, path: Option<&str>) -> bool {
    path.and_then(|path| path.strip_prefix('/')).and_then(|path| path.split('/').next())
        == Some(project.as_str())
}

/// Group with the place behind which the answer begins.
#[derive(Clone, Copy)]
enum After {
    Recorded(Option<ConflictId>),
    Names(Option<ObjectId>),
    Moves(Option<ObjectId>),
}

impl After {
    fn read(group: Group, after: Option<&str>) -> std::result::Result<Self, Problem> {
        fn parsed<T: FromStr<Err: fmt::Display>>(
            after: Option<&str>,
        ) -> std::result::Result<Option<T>, Problem> {
            after.map(str::parse).transpose().map_err(|error| Problem::new(ProblemKind::BadRequest, error))
        }
        match group {
            Group::Recorded => parsed(after).map(Self::Recorded),
            Group::Names => parsed(after).map(Self::Names),
            Group::Moves => parsed(after).map(Self::Moves),
        }
    }
}

fn page(catalog: &mut Catalog<AnyStore>, after: After) -> Result<ConflictPage> {
    let names = SiteNames::read(catalog)?;
    let (conflicts, next) = match after {
        After::Recorded(after) => {
            let found = catalog.conflicts(after, MOST)?;
            let next = found.last().filter(|_| found.len() == MOST).map(|last| last.dispute.id().to_string());
            (found.iter().map(|one| recorded(&names, catalog, one)).collect::<Result<_>>()?, next)
        }
        After::Names(after) => {
            let found = catalog.numbered_names(after, MOST)?;
            let next = found.last().filter(|_| found.len() == MOST).map(|last| last.id.to_string());
            (found.iter().map(|node| same_name(&names, catalog, node)).collect::<Result<_>>()?, next)
        }
        After::Moves(after) => {
            let found = catalog.refused_moves(after, MOST)?;
            let next = found.last().filter(|_| found.len() >= MOST).map(|last| last.object.to_string());
            let mut all = Vec::new();
            for step in &found {
                let value = entry(catalog, step.parent, step.name.as_str())?;
                all.push(ConflictBody {
                    id: format!("{CYCLE}{}", step.object),
                    kind: "cycle",
                    object: step.object.to_string(),
                    path: catalog.path_of(step.object)?.map(|path| path.to_string()),
                    lost: write(&names, step.stamp, value),
                    won: None,
                    noted: None,
                    state: "open",
                    until: None,
                    choice: None,
                });
            }
            (all, next)
        }
    };
    Ok(ConflictPage { conflicts, next })
}

fn write(names: &SiteNames, stamp: Hlc, value: Option<String>) -> WriteBody {
    let (site, site_name) = (stamp.site.to_string(), names.of(stamp.site));
    WriteBody { site, site_name, time: stamp.time.millis().0, value }
}

fn entry(catalog: &mut Catalog<AnyStore>, parent: ObjectId, name: &str) -> Result<Option<String>> {
    let above = if parent.is_root() { Some(CatalogPath::root()) } else { catalog.path_of(parent)? };
    Ok(above.map(|above| format!("{}/{name}", above.to_string().trim_end_matches('/'))))
}

fn value(catalog: &mut Catalog<AnyStore>, value: &WrittenValue) -> Result<Option<String>> {
    match value {
        WrittenValue::Name { parent, name } => entry(catalog, *parent, name.as_str()),
        WrittenValue::Version(tag) => Ok(Some(version_of(*tag).to_string())),
    }
}

fn recorded(
    names: &SiteNames,
    catalog: &mut Catalog<AnyStore>,
    conflict: &RecordedConflict,
) -> Result<ConflictBody> {
    let dispute = &conflict.dispute;
    let (state, until, choice) = match conflict.state {
        ConflictState::Open { until } => {
            ("open", (dispute.kind == DisputeKind::Name).then_some(until.0), None)
        }
        ConflictState::Settled(settled) => ("settled", None, Some(settled.choice)),
        ConflictState::Final => ("final", None, None),
    };
    Ok(ConflictBody {
        id: dispute.id().to_string(),
        kind: match dispute.kind {
            DisputeKind::Name => "name",
            DisputeKind::Contents => "contents",
        },
        object: dispute.object.to_string(),
        path: conflict.path.as_ref().map(ToString::to_string),
        lost: write(names, dispute.lost.stamp, value(catalog, &conflict.lost)?),
        won: Some(write(names, dispute.won.stamp, value(catalog, &conflict.won)?)),
        noted: Some(conflict.noted.0),
        state,
        until,
        choice: choice.map(|choice| match choice {
            Choice::Keep => "keep",
            Choice::Flip => "flip",
        }),
    })
}

fn same_name(names: &SiteNames, catalog: &mut Catalog<AnyStore>, node: &Node) -> Result<ConflictBody> {
    let wanted = entry(catalog, node.parent, node.name.as_str())?;
    let first = wanted.as_deref().and_then(|path| path.parse().ok()).map(|path| catalog.stat(&path));
    // The earlier entry may have gone between two reads; then the next list has no conflict.
    let first = first.and_then(std::result::Result::ok).and_then(|stat| stat.node);
    Ok(ConflictBody {
        id: format!("{SAME_NAME}{}", node.id),
        kind: "same_name",
        object: node.id.to_string(),
        path: catalog.path_of(node.id)?.map(|path| path.to_string()),
        lost: write(names, node.named, entry(catalog, node.parent, &node.shown)?),
        won: first.map(|first| write(names, first.named, wanted)),
        noted: None,
        state: "open",
        until: None,
        choice: None,
    })
}

/// Settlement of a conflict. `keep` makes what is shown final; `flip` takes the write that lost.
#[utoipa::path(post, path = "/conflicts/{id}", tag = "replication", request_body = SettlementBody,
    params(("id" = String, Path, description = "Identity of the conflict")),
    responses((status = 204, description = "The conflict is settled"),
        (status = 400, description = "The conflict cannot be settled so"), (status = 404, description = "There is none")))]
pub(crate) async fn settle(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Json(settlement): Json<SettlementBody>,
) -> Result<http::StatusCode, Problem> {
    let choice = match settlement.choice {
        ChoiceBody::Keep => Choice::Keep,
        ChoiceBody::Flip => Choice::Flip,
    };
    let bad = |error: &dyn std::fmt::Display| Problem::new(ProblemKind::BadRequest, error);
    let numbered = id.strip_prefix(SAME_NAME).map(str::parse::<ObjectId>).transpose();
    let numbered = numbered.map_err(|error| bad(&error))?;
    let recorded = numbered.is_none().then(|| id.parse::<ConflictId>()).transpose();
    let recorded = recorded.map_err(|error| {
        let refused = "cannot settle a refused move: it has no effect; move the collection to another place";
        if id.starts_with(CYCLE) { bad(&refused) } else { bad(&error) }
    })?;
    let object = numbered.or(recorded.map(|id| id.object)).unwrap_or(ObjectId::ROOT);
    let path = with(&app, "settle the conflict", move |catalog| catalog.path_of(object)).await?;
    let path = path.ok_or_else(|| Problem::not_found(format_args!("the entry of the conflict {id}")))?;
    let path = allowed(&app, &access, Some(&path.to_string()), Verb::Settle).await?;
    let done = with(&app, "settle the conflict", move |catalog| match recorded {
        Some(id) => settle_recorded(catalog, id, choice, &path),
        None => settle_names(catalog, &path, choice),
    });
    done.await?;
    let act = if choice == Choice::Keep { "conflicts keep" } else { "conflicts flip" };
    app.audit(&access, act, &id).await;
    Ok(http::StatusCode::NO_CONTENT)
}

/// Settles a recorded conflict. The contents that lost become current again as a new choice of the version.
fn settle_recorded(
    catalog: &mut Catalog<AnyStore>,
    id: ConflictId,
    choice: Choice,
    path: &CatalogPath,
) -> Result<()> {
    if choice == Choice::Flip
        && let WrittenValue::Version(version) = catalog.conflict(id)?.lost
    {
        return catalog.set_current(path, version);
    }
    catalog.settle(id, choice)
}

/// Settles equal names: renames this entry, or the other one, to the name with the number.
fn settle_names(catalog: &mut Catalog<AnyStore>, path: &CatalogPath, choice: Choice) -> Result<()> {
    let unsuitable = |reason, remedy| {
        let object = path.to_string();
        Err(CatalogError::Unsuitable { verb: "settle the name of", object, reason, remedy })
    };
    let Some(node) = catalog.stat(path)?.node.filter(|node| node.shown != node.name.as_str()) else {
        return unsuitable("no other entry has its name", "list the conflicts again");
    };
    let wanted = entry(catalog, node.parent, node.name.as_str())?;
    let Some(wanted) = wanted.and_then(|wanted| wanted.parse::<CatalogPath>().ok()) else {
        return unsuitable("its collection is in the trash", "restore the collection first");
    };
    match choice {
        Choice::Keep => catalog.rename(path, path),
        Choice::Flip => catalog.swap_names(path, &wanted),
    }
}
