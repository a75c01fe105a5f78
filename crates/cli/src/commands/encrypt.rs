//! `holdfast encrypt` and `holdfast decrypt`: files and objects through a cipher, each complete or absent.

use crate::args::ScanArgs;
use crate::item_name;
use crate::out::Out;
use crate::scanning;
use holdfast_base::ByteSize;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::json::CryptedItem;
use holdfast_scan::cipher::{Cipher, Iv, Key};
use holdfast_scan::{Crypt, Direction, Pick};
use holdfast_vault::Place;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a key file at most.
const MOST_KEY: u64 = 4096;

/// Encrypt files and objects into a folder or vault
#[derive(clap::Args, Debug)]
#[command(
    after_help = "SOURCE is a file, a folder with all below it, VAULT:PREFIX, or - for standard input. Each output is named\n\
    as its source, with .enc behind it; it gets its name when it is complete and was read back, and must\n\
    not exist yet.\n\n\
    aes-256-gcm, the default, is authenticated: a changed, cut or exchanged part is refused. docs/scan.md\n\
    has its format. 3des-cbc, 3des-ecb and 3des-ctr are for archives that know nothing newer, and give what\n\
    `openssl enc -des-ede3-…` gives; a random IV is the first 8 bytes of the output.\n\n\
    Exits with 1 if a source could not be encrypted (the outputs of the rest are complete).\n\n\
    Examples:\n  holdfast encrypt runs/ -o runs.enc/ --key-file secret.key\n  \
    holdfast encrypt s3:2026/ -o cold:2026 --key-file secret.key\n  \
    holdfast encrypt old.tar -o out/ --cipher 3des-cbc --key-file old.key --iv 0123456789abcdef"
)]
pub(crate) struct EncryptArgs {
    #[command(flatten)]
    args: Args,
}

/// Decrypt files and objects into a folder or vault
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The ending .enc is taken from the names of outputs; others get .dec. An output gets its name when all of\n\
    it was decrypted and read back, and must not exist yet. Who may not read the source may not read it; that of\n\
    a pipe or an object store is for you alone.\n\n\
    Exits with 1 if a source could not be decrypted: it was changed, cut, or encrypted with another key (the\n\
    outputs of the rest are complete).\n\n\
    Examples:\n  holdfast decrypt runs.enc/ -o runs/ --key-file secret.key\n  \
    holdfast decrypt old.tar.enc -o out/ --cipher 3des-cbc --key-file old.key --iv 0123456789abcdef"
)]
pub(crate) struct DecryptArgs {
    #[command(flatten)]
    args: Args,
}

/// Arguments that both commands share.
#[derive(clap::Args, Debug)]
struct Args {
    /// File, folder, VAULT:PREFIX, or - for standard input
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// Folder or VAULT:PREFIX of the outputs
    #[arg(short, long, value_name = "PLACE")]
    output: PathBuf,
    /// Cipher: aes-256-gcm, 3des-cbc, 3des-ecb or 3des-ctr
    #[arg(long, value_name = "NAME", default_value_t = Cipher::Aes256Gcm)]
    cipher: Cipher,
    /// File of the key: raw bytes, or hexadecimal digits (32 bytes; 24 or 16 for 3des); nobody else may read it
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Initialisation vector of 3des-cbc and 3des-ctr, which the encrypted file then does not contain
    #[arg(long, value_name = "HEX", value_parser = iv)]
    iv: Option<Iv>,
    #[command(flatten)]
    scan: ScanArgs,
}

fn iv(text: &str) -> Result<Iv, String> {
    let wrong = || format!("`{text}` is no initialisation vector: write 16 hexadecimal digits");
    if text.len() != 16 || !text.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    u64::from_str_radix(text, 16).map(u64::to_be_bytes).map_err(|_| wrong())
}

/// Reads a key that nobody else may read.
fn key(path: &Path, cipher: Cipher) -> Result<Key> {
    let cannot = |error: &std::io::Error| Failure::io("cannot read the key", path, error);
    let found = std::fs::metadata(path).map_err(|error| cannot(&error))?;
    if found.permissions().mode() & 0o077 != 0 {
        return Err(Failure::failed("others may read this file, which has a key")
            .at_path(path)
            .advice(format_args!("take their rights away: chmod 600 {}", path.display())));
    }
    if found.len() > MOST_KEY {
        return Err(Failure::usage("this file is too large for a key").at_path(path));
    }
    let bytes = std::fs::read(path).map_err(|error| cannot(&error))?;
    Key::parse(cipher, &bytes).map_err(|error| Failure::usage(error).at_path(path))
}

/// Runs the command `holdfast encrypt`.
pub(crate) fn encrypt(args: &EncryptArgs, out: &mut Out) -> Result<()> {
    run(&args.args, Direction::Encrypt, out)
}

/// Runs the command `holdfast decrypt`.
pub(crate) fn decrypt(args: &DecryptArgs, out: &mut Out) -> Result<()> {
    run(&args.args, Direction::Decrypt, out)
}

fn run(args: &Args, direction: Direction, out: &mut Out) -> Result<()> {
    let key = key(&args.key_file, args.cipher)?;
    let sources = args.scan.sources(&args.sources, Pick::Files)?;
    if let Some(ring) = sources.rings().first() {
        return Err(Failure::usage("this is a ring, whose elements are no files")
            .at_path(ring)
            .advice("evacuate a hold, or export a range, and encrypt that"));
    }
    let place = Place::parse(&args.output)?;
    let module = Crypt { direction, key, iv: args.iv, sources: &sources, place };
    module.check()?;
    let mut items = 0_u64;
    let report = scanning::run(&module, &sources, &args.scan, &mut |done| {
        items += 1;
        if out.is_json() {
            return out.object(&CryptedItem {
                source: &done.item.container.source,
                source_bytes: item_name::source_bytes(&done.item.container),
                output: &done.place,
                bytes: done.bytes,
            });
        }
        out.line(format_args!("{}: {}", done.place, ByteSize(done.bytes)))
    })?;
    scanning::end(&report, &args.scan, out)?;
    if items == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}
