//! One suite over both stores: each function runs with `SQLite` and with `PostgreSQL`.

mod conditions;
mod conflicts;
mod copies;
mod crashes;
mod databases;
mod facts;
mod grants;
mod limits;
mod links;
mod migration;
mod model;
mod model_commands;
mod objects;
mod purge;
mod replication;
mod snapshots;
mod tree;

use databases::{PostgresDatabases, SqliteDatabases};

/// Makes one test for each function and store.
macro_rules! suite {
    ($($module:ident::$name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$module::$name(&super::SqliteDatabases::new()); })*
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(databases) = super::PostgresDatabases::new() { super::$module::$name(&databases); }
            })*
        }
    };
}

suite! {
    conditions::searches_agree_with_evaluation,
    conditions::searches_respect_place_name_and_pages,
    conflicts::a_name_is_flipped_within_its_time_and_then_final,
    conflicts::the_home_site_accepts_one_of_two_contents,
    conflicts::the_tree_shows_numbered_names_and_refused_moves,
    copies::a_collection_is_copied_in_batches,
    copies::an_object_is_copied_with_all_that_it_has,
    crashes::a_crash_at_any_statement_leaves_no_half_operation,
    crashes::writers_of_two_connections_leave_no_gap_in_the_log,
    facts::facts_are_listed_by_key_and_converge,
    grants::rights_are_inherited_and_converge,
    limits::ten_thousand_entries_are_listed_in_pages,
    limits::a_thousand_levels_work,
    limits::odd_names_and_texts_are_kept_exactly,
    limits::foreign_databases_are_refused,
    links::a_link_is_a_second_name,
    links::a_link_of_a_deleted_object_says_so,
    links::searches_follow_links,
    model_commands::commands_agree_with_the_model,
    objects::versions_are_never_overwritten,
    objects::attributes_are_a_set_of_triples,
    objects::replicas_tell_the_only_copy,
    objects::a_catalog_is_opened_as_its_own_site,
    objects::a_put_makes_collections_and_its_replica_is_found_by_key,
    objects::attributes_of_many_objects_change_together,
    objects::attributes_are_replaced_for_the_current_version_only,
    replication::an_idle_site_acknowledges_once,
    replication::catalogs_converge_with_the_reference,
    migration::an_old_database_is_brought_forward,
    replication::equal_collections_become_one,
    purge::a_purge_frees_places_that_nobody_needs,
    purge::a_purge_waits_for_all_sites_and_takes_the_whole_tree,
    replication::a_change_rescues_a_collection_into_which_its_object_was_moved_unseen,
    replication::operations_are_acknowledged_once_all_sites_know_them,
    replication::new_operations_are_counted_and_own_ones_are_found,
    replication::remote_operations_are_idempotent_and_causal,
    snapshots::a_damaged_snapshot_changes_nothing,
    snapshots::a_log_keeps_what_is_needed,
    snapshots::a_new_site_starts_from_a_snapshot,
    snapshots::a_site_that_starts_on_its_own_joins_later,
    snapshots::sites_that_were_long_alone_become_one,
    tree::moves_are_checked,
    tree::the_trash_keeps_everything,
}
