//! The options of a connection.

use clap::{Args, ValueHint};
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
