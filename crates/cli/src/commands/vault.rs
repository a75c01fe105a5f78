//! `holdfast vault`: look after the places where datasets are stored.

use crate::folders;
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, Rate, Timestamp, counted};
use holdfast_client::json::{
    CheckedVault, DamagedDataset, DamagedPart, RemovedObject, ScrubbedVault, SyncedVaults, VaultLine,
    VaultObjectLine,
};
use holdfast_client::table::{Side, Table};
use holdfast_client::{config, times};
use holdfast_vault::{Damage, Place, ScrubReport, Scrubbing, Vault, scrub, sync};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Look after vaults: the folders, S3 buckets and HDFS folders where datasets are stored
#[derive(clap::Args, Debug)]
#[command(after_help = "A vault has a name and a URL in the configuration file:\n\n  \
    [vaults.archive]\n  url = \"/archive\"\n\n  \
    [vaults.s3]\n  url = \"s3://bucket/prefix\"\n  endpoint = \"https://s3.example.org\"    # where it is not Amazon's\n  \
    credentials = \"/etc/holdfast/s3.keys\"     # mode 0600; else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY\n\n  \
    [vaults.hdfs]\n  url = \"hdfs://namenode:8020/holdfast\"\n\n\
    Examples:\n  holdfast vault check s3\n  holdfast vault ls s3:2026/\n  holdfast vault sync archive: s3:\n  \
    holdfast vault scrub archive --repair-from s3 --rate 50MiB/s")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::List | What::Ls { .. })
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// List the vaults of the configuration file
    #[command(after_help = "Example:\n  holdfast vault list")]
    List,
    /// Try a vault: write, read back, list and remove an object
    #[command(after_help = "Example:\n  holdfast vault check s3")]
    Check {
        /// Name of the vault
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List objects with their sizes
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast vault ls s3:2026/*.mcap")]
    Ls {
        /// Vault, prefix in a vault, or glob
        #[arg(value_name = "NAME[:PREFIX]")]
        place: PathBuf,
    },
    /// Remove an object for ever
    #[command(after_help = "Example:\n  holdfast vault rm s3:2026/run1.mcap")]
    Rm {
        /// Object to remove for ever
        #[arg(value_name = "VAULT:PATH")]
        place: PathBuf,
    },
    /// Copy the objects that the second vault lacks, each verified
    #[command(
        after_help = "Nothing is overwritten or removed. Exits with 1 if a path has objects of different sizes.\n\n\
        Example:\n  holdfast vault sync archive:2026/ s3:2026/"
    )]
    Sync {
        /// Vault to copy from, or a prefix in it
        #[arg(value_name = "FROM[:PREFIX]")]
        from: PathBuf,
        /// Vault to copy to
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
    /// Read all datasets, compare them with their hashes, and repair them from another vault
    #[command(
        after_help = "Interrupted, it goes on where it was when it is started again; --restart begins anew.\n\
        Exits with 1 if a dataset is damaged and was not repaired.\n\n\
        Example:\n  holdfast vault scrub archive --repair-from s3 --rate 50MiB/s"
    )]
    Scrub {
        /// Name of the vault
        #[arg(value_name = "NAME")]
        name: String,
        /// Vault with copies, by which damaged datasets are replaced
        #[arg(long, value_name = "NAME")]
        repair_from: Option<String>,
        /// Limit on the bytes read per second
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,
        /// Begin with the first dataset again
        #[arg(long)]
        restart: bool,
    },
}

/// Runs the command `holdfast vault`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::List => list(out),
        What::Check { name } => check(name, out),
        What::Ls { place } => ls(place, out),
        What::Rm { place } => rm(place, out),
        What::Sync { from, to } => synced(from, to, out),
        What::Scrub { name, repair_from, rate, restart } => {
            scrubbed(name, repair_from.as_deref(), *rate, *restart, out)
        }
    }
}

/// Vault and prefix of `NAME`, `NAME:PREFIX` or a folder.
fn vault_of(place: &Path) -> Result<(Arc<Vault>, String)> {
    match place.to_str() {
        Some(name) if !name.contains([':', '/']) => Ok((Vault::named(name)?, String::new())),
        _ => Place::parse(place)?.prefix(),
    }
}

fn list(out: &mut Out) -> Result<()> {
    let vaults = config::vaults()?;
    if vaults.is_empty() {
        return Err(Failure::nothing("the configuration file has no vaults")
            .advice("write [vaults.NAME] with url = \"/FOLDER\" into it; see `holdfast vault --help`"));
    }
    let mut table = Table::new(&[("vault", Side::Left), ("url", Side::Left), ("endpoint", Side::Left)]);
    for vault in &vaults {
        if out.is_json() {
            let endpoint = vault.endpoint.as_deref();
            out.object(&VaultLine { name: &vault.name, url: &vault.url, endpoint })?;
        }
        table.row([vault.name.clone(), vault.url.clone(), vault.endpoint.clone().unwrap_or_default()]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

fn check(name: &str, out: &mut Out) -> Result<()> {
    let (vault, _) = vault_of(Path::new(name))?;
    vault.check()?;
    if out.is_json() {
        return out.object(&CheckedVault { vault: name });
    }
    out.line(format_args!("{name}: objects are written once, read back, listed and removed"))
}

fn ls(place: &Path, out: &mut Out) -> Result<()> {
    let (vault, prefix) = vault_of(place)?;
    let entries = vault.list(&prefix)?;
    if entries.is_empty() {
        return Err(Failure::nothing("there are no objects at this place").at(vault.place(&prefix)));
    }
    let mut table = Table::new(&[("bytes", Side::Right), ("modified", Side::Left), ("path", Side::Left)]);
    for entry in &entries {
        let since = entry.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = Timestamp(since.as_nanos() as i64);
        if out.is_json() {
            let modified = times::rfc3339(modified);
            out.object(&VaultObjectLine { path: &entry.path, bytes: entry.bytes, modified })?;
        }
        let shown = holdfast_base::clean(&entry.path);
        table.row([entry.bytes.to_string(), times::to_the_second(modified), shown]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

fn rm(place: &Path, out: &mut Out) -> Result<()> {
    let Place::Vault(vault, path) = Place::parse(place)? else {
        return Err(Failure::usage("this is no object of a vault").at_path(place).advice("say VAULT:PATH"));
    };
    vault.remove(&path)?;
    let removed = vault.place(&path);
    if out.is_json() {
        return out.object(&RemovedObject { removed: &removed });
    }
    out.line(format_args!("removed {removed}"))
}

fn synced(from: &Path, to: &Path, out: &mut Out) -> Result<()> {
    let ((source, prefix), (target, other)) = (vault_of(from)?, vault_of(to)?);
    if !other.is_empty() && other.trim_end_matches('/') != prefix.trim_end_matches('/') {
        return Err(Failure::usage("both vaults have the same paths: the prefixes differ")
            .at_path(to)
            .advice("name the prefix of the first vault alone"));
    }
    let bar = progress::bar(0, true);
    let report = sync(&source, &target, &prefix, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    if out.is_json() {
        out.object(&SyncedVaults {
            from: source.name(),
            to: target.name(),
            copied: report.copied,
            copied_bytes: report.copied_bytes,
            present: report.present,
            different: &report.different,
        })?;
    } else {
        let (copied, bytes) = (counted(report.copied, "object"), ByteSize(report.copied_bytes));
        out.line(format_args!("copied {copied}, {bytes}; {} there already", report.present))?;
        for path in &report.different {
            out.line(format_args!("{path}: the objects differ, and were left as they are"))?;
        }
    }
    if report.different.is_empty() { Ok(()) } else { Err(Failure::said(Kind::Failed)) }
}

fn scrubbed(
    name: &str,
    repair_from: Option<&str>,
    rate: Option<Rate>,
    restart: bool,
    out: &mut Out,
) -> Result<()> {
    let (vault, _) = vault_of(Path::new(name))?;
    let other = repair_from.map(|name| vault_of(Path::new(name))).transpose()?;
    let mark = Mark::of(name);
    let after = if restart { String::new() } else { mark.read() };
    if !after.is_empty() && !out.is_json() {
        out.line(format_args!("going on behind {after}"))?;
    }
    let repair_from = other.as_ref().map(|(vault, _)| vault);
    let bar = progress::bar(0, true);
    let scrubbing = Scrubbing { vault: &vault, repair_from, rate, after };
    let report = scrub(&scrubbing, &mut |path, done, all| {
        bar.set_length(all);
        bar.set_position(done);
        mark.write(path)
    });
    bar.finish_and_clear();
    let report = report?;
    mark.remove();
    told(name, repair_from, &report, out)
}

fn told(name: &str, repair_from: Option<&Arc<Vault>>, report: &ScrubReport, out: &mut Out) -> Result<()> {
    if out.is_json() {
        let parts = |damage: &'_ Damage| -> Vec<(String, String)> {
            damage.findings.iter().map(|part| (part.place.clone(), part.cause.clone())).collect()
        };
        let parts: Vec<_> = report.damaged.iter().map(parts).collect();
        let damaged = report.damaged.iter().zip(&parts).map(|(damage, parts)| DamagedDataset {
            path: &damage.path,
            parts: parts.iter().map(|(place, cause)| DamagedPart { place, cause }).collect(),
            repaired_from: damage.repaired_from.as_deref(),
        });
        out.object(&ScrubbedVault {
            vault: name,
            datasets: report.datasets,
            bytes: report.bytes,
            others: report.others,
            damaged: damaged.collect(),
        })?;
    } else {
        for damage in &report.damaged {
            for part in &damage.findings {
                out.line(format_args!("{name}:{}: {} is damaged: {}", damage.path, part.place, part.cause))?;
            }
            if let (Some(path), Some(from)) = (&damage.repaired_from, repair_from) {
                out.line(format_args!("{name}:{}: repaired from {}", damage.path, from.place(path)))?;
            }
        }
        let (datasets, bytes) = (counted(report.datasets, "dataset"), ByteSize(report.bytes));
        let damaged = report.damaged.len();
        out.line(format_args!("{name}: {datasets}, {bytes} read, {damaged} damaged"))?;
        if report.others > 0 {
            let others = counted(report.others, "other object");
            out.line(format_args!("{others} without hashes, not verified"))?;
        }
    }
    let is_left = report.damaged.iter().any(|damage| damage.repaired_from.is_none());
    if is_left { Err(Failure::said(Kind::Failed)) } else { Ok(()) }
}

/// Mark of an unfinished scrub: the path that was verified last.
struct Mark(PathBuf);

impl Mark {
    fn of(vault: &str) -> Self {
        Self(folders::state().join(format!("scrub-{}", vault.replace(['/', ':'], "_"))))
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    fn write(&self, path: &str) -> Result<()> {
        let written =
            self.0.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&self.0, path));
        written.map_err(|error| Failure::io("cannot note how far the scrub is", &self.0, &error))
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }
}
