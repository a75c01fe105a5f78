//! Certificates of a server: from files, or self-signed at the first start, with the fingerprint that clients pin.

use crate::durable::sync_parent;
use crate::error::{ServerError, reason};
use crate::options::Transport;
use holdfast_remote::Fingerprint;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// File of the self-signed certificate in the data folder.
const CERTIFICATE_FILE: &str = "certificate.pem";

/// File of the private key in the data folder, readable by its owner only.
const KEY_FILE: &str = "key.pem";

/// Configuration of TLS and the fingerprint of its certificate.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) fingerprint: Fingerprint,
}

/// TLS of a transport on an address; `None` for plain HTTP.
pub(crate) fn configure(
    transport: &Transport,
    address: IpAddr,
    data: &Path,
) -> Result<Option<Tls>, ServerError> {
    match transport {
        Transport::Plain => Ok(None),
        Transport::Automatic if address.is_loopback() => Ok(None),
        Transport::Automatic | Transport::SelfSigned => {
            let (certificate, key) = (data.join(CERTIFICATE_FILE), data.join(KEY_FILE));
            // The certificate is written last: it is there only together with its key.
            if !certificate.exists() {
                make_certificate(&certificate, &key, address)?;
            }
            load(&certificate, &key).map(Some)
        }
        Transport::Files { certificate, key } => load(certificate, key).map(Some),
    }
}

fn make_certificate(certificate: &Path, key: &Path, address: IpAddr) -> Result<(), ServerError> {
    let failed = |error: rcgen::Error| {
        ServerError::failed("make a certificate", error, "give certificate and key as files")
    };
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.is_loopback() && !address.is_unspecified() {
        names.push(address.to_string());
    }
    // The default validity never ends: clients trust the fingerprint, and not a date.
    let made = rcgen::generate_simple_self_signed(names).map_err(failed)?;
    write(key, &made.signing_key.serialize_pem(), 0o600)
        .and_then(|()| write(certificate, &made.cert.pem(), 0o644))
        .map_err(|error| ServerError::io("write the certificate", certificate, &error))
}

/// Writes a file durably under a temporary name and renames it.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    crate::durable::remove_file(&unfinished)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_parent(path)
}

fn load(certificate: &Path, key: &Path) -> Result<Tls, ServerError> {
    let failed = |path: &Path, reason: &dyn std::fmt::Display| {
        ServerError::usage(
            format_args!("use the file {} for TLS", path.display()),
            reason,
            "give PEM files of a certificate and its private key",
        )
    };
    let text = |path: &Path| fs::read(path).map_err(|error| failed(path, &reason(&error)));
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|error| failed(certificate, &error))?;
    let Some(first) = certificates.first() else {
        return Err(failed(certificate, &"it contains no certificate"));
    };
    let fingerprint = Fingerprint::of(first);
    let private = PrivateKeyDer::from_pem_slice(&text(key)?).map_err(|error| failed(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, private));
    let mut config = config.map_err(|error| failed(certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls { config: Arc::new(config), fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_self_signed_certificate_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let make = || configure(&Transport::SelfSigned, address, folder.path()).unwrap().unwrap().fingerprint;
        let fingerprint = make();
        assert_eq!(make(), fingerprint);
        let mode = fs::metadata(folder.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(configure(&Transport::Automatic, address, folder.path()).unwrap().is_none());
        let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert!(configure(&Transport::Automatic, everywhere, folder.path()).unwrap().is_some());
        let none = Transport::Files { certificate: "/none".into(), key: "/none".into() };
        let error = configure(&none, address, folder.path()).err().unwrap().to_string();
        assert!(error.starts_with("cannot use the file /none for TLS: no such file"), "{error}");
    }
}
