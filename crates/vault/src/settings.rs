//! Settings of a vault as a store: its URL, and credentials from the environment or a file that only its owner can read.

use crate::folder::Folder;
use crate::objects::{Objects, Parts};
use crate::runtime::handle;
use crate::store::Store;
use hdfs_native_object_store::HdfsObjectStoreBuilder;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::config::VaultEntry;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time after which a request to S3 is not tried again.
const RETRY_FOR: Duration = Duration::from_mins(1);

/// Word for `credentials` that asks the machine's instance metadata for them.
const INSTANCE: &str = "instance";

/// Opens the store of a vault.
pub(crate) fn store(entry: &VaultEntry) -> Result<Store> {
    let url = entry.url.as_str();
    match url.split_once("://") {
        None if url.starts_with('/') => Ok(Store::Folder(Arc::new(Folder::new(url.into())))),
        Some(("file", path)) if path.starts_with('/') => {
            Ok(Store::Folder(Arc::new(Folder::new(path.into()))))
        }
        Some(("s3", rest)) => s3(entry, rest),
        Some(("hdfs", rest)) => hdfs(entry, rest),
        _ => Err(wrong(entry, format_args!("`{url}` is no URL of a vault"))
            .advice("take /FOLDER, s3://BUCKET/PREFIX or hdfs://HOST:PORT/FOLDER")),
    }
}

fn wrong(entry: &VaultEntry, what: impl std::fmt::Display) -> Failure {
    Failure::usage(what).at(format_args!("vault `{}`", entry.name))
}

fn s3(entry: &VaultEntry, rest: &str) -> Result<Store> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig { retry_timeout: RETRY_FOR, ..RetryConfig::default() });
    if let Some(endpoint) = &entry.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    if let Some(region) = &entry.region {
        builder = builder.with_region(region);
    }
    match entry.credentials.as_deref() {
        Some(file) if file == Path::new(INSTANCE) => {}
        Some(file) => {
            let keys = credentials(entry, file)?;
            builder = builder.with_access_key_id(keys.id).with_secret_access_key(keys.secret);
            if let Some(token) = keys.token {
                builder = builder.with_token(token);
            }
        }
        None if has_credentials() => {}
        None => {
            return Err(wrong(entry, "there are no credentials").advice(
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in the configuration file credentials = \
                 \"/PATH\" of a file as ~/.aws/credentials, or \"instance\"",
            ));
        }
    }
    let store = builder.build().map_err(|error| wrong(entry, format_args!("cannot open S3: {error}")))?;
    let store = Arc::new(store);
    let parts = Parts(Arc::clone(&store) as _);
    Ok(Store::Objects(Arc::new(Objects::new(store, Some(parts), prefix))))
}

fn has_credentials() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("AWS_ACCESS_KEY_ID")
        || is_set("AWS_WEB_IDENTITY_TOKEN_FILE")
        || is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI")
}

/// Keys of an account. They have no `Debug`, so that no message shows them.
struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
}

/// Reads a file in the form of `~/.aws/credentials`: its first profile.
fn credentials(entry: &VaultEntry, file: &Path) -> Result<Keys> {
    let cannot = |error: &std::io::Error| Failure::io("cannot read the credentials", file, error);
    let mode = std::fs::metadata(file).map_err(|error| cannot(&error))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Failure::usage("others may read the credentials")
            .at_path(file)
            .advice(format_args!("chmod 600 {}", file.display())));
    }
    let text = std::fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let value = |wanted: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim().to_owned())
    };
    match (value("aws_access_key_id"), value("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok(Keys { id, secret, token: value("aws_session_token") }),
        _ => Err(wrong(entry, "the credentials have no aws_access_key_id and aws_secret_access_key")
            .advice(format_args!("write them as `name = value` into {}", file.display()))),
    }
}

fn hdfs(entry: &VaultEntry, rest: &str) -> Result<Store> {
    let (host, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let cannot = |error: &dyn std::fmt::Display| wrong(entry, format_args!("cannot open HDFS: {error}"));
    let runtime = handle().map_err(|error| cannot(&error))?;
    let builder = HdfsObjectStoreBuilder::new().with_url(format!("hdfs://{host}"));
    let store = builder.with_io_runtime(runtime.clone()).build().map_err(|error| cannot(&error))?;
    Ok(Store::Objects(Arc::new(Objects::new(Arc::new(store), None, folder))))
}
