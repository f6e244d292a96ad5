//! The server under test, and plain or TLS streams to it.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::failure::LoadError;

/// The server under test.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    /// TLS configuration and server name; `None` for plain HTTP.
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl From<SocketAddr> for Server {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

impl Server {
    /// A server with TLS. Its certificate must be valid for `name` and signed by an authority in a PEM file.
    ///
    /// # Errors
    /// [`LoadError::Usage`] if the file contains no certificates, or the name is invalid.
    pub fn with_tls(address: SocketAddr, name: &str, authorities: &Path) -> Result<Self, LoadError> {
        let wrong =
            |why: &dyn std::fmt::Display| LoadError::Usage(format!("{}: {why}", authorities.display()));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authorities).map_err(|error| wrong(&error))? {
            roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name =
            ServerName::try_from(name.trim_matches(['[', ']']).to_owned()).map_err(|error| wrong(&error))?;
        Ok(Self { address, tls: Some((Arc::new(config), name)) })
    }

    /// Connects and, with TLS, completes the handshake.
    pub(crate) fn connect(&self, timeout: Duration) -> io::Result<Stream> {
        let mut socket = TcpStream::connect_timeout(&self.address, timeout)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let Some((config, name)) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let mut session =
            ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

/// A stream to the server.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Returns the underlying socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.get_ref(),
        }
    }

    /// Returns whether TLS has data that was already read from the socket.
    pub(crate) fn has_buffered(&mut self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => {
                stream.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(out),
            Self::Tls(stream) => stream.read(out),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(parts),
            Self::Tls(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
