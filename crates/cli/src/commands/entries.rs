//! Printing of entries of a site, for `ls` and `find`.

use crate::commands::paged_table::PagedTable;
use crate::out::Out;
use crate::site::{EntryView, stored};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::table::Side;
use holdfast_remote::CatalogKind;

const COLUMNS: &[(&str, Side)] =
    &[("bytes", Side::Right), ("stored", Side::Left), ("version", Side::Left), ("path", Side::Left)];

/// Printer of entries: JSON objects, names, or a table.
pub(crate) struct EntryPrinter<'a> {
    out: &'a mut Out,
    table: Option<PagedTable>,
    /// Number of entries so far.
    pub(crate) entries: u64,
}

impl<'a> EntryPrinter<'a> {
    /// Printer that shows sizes, times and versions if `long` is set.
    pub(crate) fn new(out: &'a mut Out, long: bool) -> Self {
        let table = (long && !out.is_json()).then(|| PagedTable::new(COLUMNS));
        Self { out, table, entries: 0 }
    }

    /// Prints an entry, to people under the name `shown`.
    pub(crate) fn entry(&mut self, entry: &EntryView<'_>, shown: &str) -> Result<()> {
        self.entries += 1;
        if self.out.is_json() {
            return self.out.object(&entry.json());
        }
        let slash = if entry.kind == CatalogKind::Collection { "/" } else { "" };
        let shown = format!("{}{slash}", clean(shown));
        let Some(table) = &mut self.table else { return self.out.line(shown) };
        let version = entry.version;
        let cells = [
            version.map(|version| version.size.to_string()).unwrap_or_default(),
            version.map(|version| stored(version.stored)).unwrap_or_default(),
            version.map(|version| clean(&version.version)).unwrap_or_default(),
            shown,
        ];
        table.row(self.out, cells)
    }

    /// Prints the end of the table, if there is one.
    pub(crate) fn end(self) -> Result<()> {
        self.table.map_or(Ok(()), |table| table.end(self.out))
    }
}
