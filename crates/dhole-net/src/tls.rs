//! TLS between machines. Keys are made for one run, by each process for itself, and no authority
//! vouches for them: who is at the other end is proved inside, over what only the two ends of a
//! session know (RFC 9266).

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, ServerConfig,
    ServerConnection, SignatureScheme,
};

/// What a process brings to its sessions.
#[derive(Clone, Debug)]
pub struct Identity {
    listens: Arc<ServerConfig>,
    connects: Arc<ClientConfig>,
}

impl Identity {
    /// A fresh key, and TLS 1.3 with nothing kept from one session for the next.
    pub fn new() -> io::Result<Identity> {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let key = key.map_err(|_| io::Error::other("the system has no random numbers"))?;
        let key = PrivatePkcs8KeyDer::from(key.as_ref());
        let key = provider::sign::any_eddsa_type(&key).map_err(io::Error::other)?;
        let public = key.public_key();
        let public = public.ok_or_else(|| io::Error::other("the key has no public half"))?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key);

        let provider = Arc::new(provider::default_provider());
        let mut listens = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(
                certified,
            ))));
        listens.send_tls13_tickets = 0;
        let mut connects = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ProvedInside(provider)))
            .with_no_client_auth();
        connects.resumption = Resumption::disabled();
        Ok(Identity {
            listens: Arc::new(listens),
            connects: Arc::new(connects),
        })
    }

    /// The end of a session that connects. The socket must not block.
    pub fn connect(&self, socket: TcpStream) -> io::Result<Session> {
        let name = ServerName::try_from("dhole").map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.connects), name);
        let connection = connection.map_err(io::Error::other)?;
        Ok(Session::new(socket, connection.into()))
    }

    /// The end that listens.
    pub fn listen(&self, socket: TcpStream) -> io::Result<Session> {
        let connection = ServerConnection::new(Arc::clone(&self.listens));
        let connection = connection.map_err(io::Error::other)?;
        Ok(Session::new(socket, connection.into()))
    }
}

/// Takes any key: it is the cluster's secret that says who is there, proved over the session's own
/// secret.
#[derive(Debug)]
struct ProvedInside(Arc<CryptoProvider>);

impl ServerCertVerifier for ProvedInside {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.0.signature_verification_algorithms;
        algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// One end of a session. No call blocks.
#[derive(Debug)]
pub struct Session {
    socket: TcpStream,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// One byte fewer was said to be taken than was: the last, until the kernel has all of it. So
    /// whoever writes has something to write as long as something is to be sent.
    owed: bool,
}

impl Session {
    fn new(socket: TcpStream, connection: Connection) -> Session {
        Session {
            socket,
            state: Mutex::new(State {
                connection,
                owed: false,
            }),
        }
    }

    /// The socket that the session goes over.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// What only the two ends of this session know, once it is agreed on.
    pub fn binding(&self) -> Option<[u8; 32]> {
        let state = self.locked();
        let exported = [0; 32];
        let label = b"EXPORTER-Channel-Binding";
        state
            .connection
            .export_keying_material(exported, label, None)
            .ok()
    }

    /// Whether there is something to be sent that nobody writes.
    pub fn wants_write(&self) -> bool {
        self.locked().connection.wants_write()
    }

    /// Reads what has come, as much as fits. 0 is the end.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.locked();
        let connection = &mut state.connection;
        loop {
            match connection.reader().read(buffer) {
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            let came = connection.read_tls(&mut &self.socket);
            if matches!(&came, Err(cause) if cause.kind() == ErrorKind::WouldBlock) {
                flush(&self.socket, connection)?;
            }
            came?;
            let processed = connection.process_new_packets();
            // An alert says to the peer what was wrong.
            let flushed = flush(&self.socket, connection);
            processed.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
            flushed?;
        }
    }

    /// Takes some of the bytes of `parts`, from the front, and says how many. Whoever is told of
    /// some must go on with the rest.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.locked();
        let State { connection, owed } = &mut *state;
        if !flush(&self.socket, connection)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut skipped = usize::from(std::mem::take(owed));
        let before = skipped;
        let mut taken = 0;
        for part in parts {
            let over = skipped.min(part.len());
            skipped -= over;
            let part = &part[over..];
            let now = connection.writer().write(part)?;
            taken += now;
            if now < part.len() {
                break;
            }
        }
        *owed = !flush(&self.socket, connection)? && taken > 0;
        match before + taken - usize::from(*owed) {
            0 if parts.iter().any(|part| !part.is_empty()) => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Ends one direction or both.
    pub fn shutdown(&self, how: Shutdown) {
        let mut state = self.locked();
        if how != Shutdown::Read {
            state.connection.send_close_notify();
            // Where it does not fit, the peer learns of the end as of one that was not announced.
            let _ = flush(&self.socket, &mut state.connection);
        }
        // An error says that it has ended already.
        let _ = self.socket.shutdown(how);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Gives the kernel what is to be sent, and says whether that was all.
fn flush(socket: &TcpStream, connection: &mut Connection) -> io::Result<bool> {
    let mut socket = socket;
    while connection.wants_write() {
        match connection.write_tls(&mut socket) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(cause) => return Err(cause),
        }
    }
    Ok(true)
}
