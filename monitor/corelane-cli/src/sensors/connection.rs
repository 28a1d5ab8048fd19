//! The options of a connection.

use crate::exit::complain;
use clap::{Args, ValueHint};
use std::fs;
use std::path::PathBuf;

/// How to reach a NATS server. A token is taken from the environment variable CORELANE_NATS_TOKEN.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub(crate) struct Connection {
    /// A credentials file for the NATS server
    #[cfg_attr(not(feature = "nats"), doc = "(not in this build: feature `nats`)")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) nats_credentials: Option<PathBuf>,

    /// The CA certificates, in PEM, by which the NATS server is verified [default: those of the system]
    #[cfg_attr(not(feature = "nats"), doc = "(not in this build: feature `nats`)")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) nats_ca: Option<PathBuf>,

    /// The client certificate, in PEM, for the NATS server
    #[cfg_attr(not(feature = "nats"), doc = "(not in this build: feature `nats`)")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "nats_key")]
    pub(crate) nats_cert: Option<PathBuf>,

    /// The key of that certificate, in PEM
    #[cfg_attr(not(feature = "nats"), doc = "(not in this build: feature `nats`)")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "nats_cert")]
    pub(crate) nats_key: Option<PathBuf>,
}

impl Connection {
    /// What it takes to reach a server: its certificates and credentials, and the system's own.
    #[cfg(target_os = "linux")]
    pub(crate) fn readable(&self) -> impl Iterator<Item = PathBuf> {
        let Connection { nats_credentials, nats_ca, nats_cert, nats_key } = self;
        let own = [nats_credentials, nats_ca, nats_cert, nats_key].into_iter().flatten().cloned();
        crate::confine::TO_CONNECT.map(PathBuf::from).into_iter().chain(own)
    }

    /// Logs which of its secrets others can read.
    pub(crate) fn warn(&self) {
        #[cfg(unix)]
        for (option, path) in [("--nats-credentials", &self.nats_credentials), ("--nats-key", &self.nats_key)] {
            use std::os::unix::fs::PermissionsExt;
            let mode =
                path.as_ref().and_then(|path| Some((path, fs::metadata(path).ok()?.permissions().mode() & 0o777)));
            if let Some((path, mode)) = mode.filter(|(_, mode)| mode & 0o004 != 0) {
                let name = path.display();
                complain(format_args!("{option} {name}: all users can read it (mode {mode:04o}); `chmod 600 {name}`"));
            }
        }
    }
}
