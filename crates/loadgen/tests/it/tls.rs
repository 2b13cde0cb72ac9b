//! An https target: who it is is made sure of, and its connections are kept.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadgen::Trust;
use loadgen::run::LoadError;
use loadgen::verify::{Patience, verify};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::driving::{closed, drive, drive_watched, get_user, plan};
use crate::stub::Stub;

/// A certificate authority of the test's own.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// What a load driver is given to trust it, as a file of its certificate.
    fn trusted(&self) -> Trust {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, self.0.pem()).unwrap();
        Trust::of_file(&path).unwrap()
    }

    fn acceptor(&self, name: SanType) -> TlsAcceptor {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names.push(name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// TLS in front of a stub, as a load balancer terminates it.
struct Front {
    url: Url,
    handshakes: Arc<AtomicU64>,
    _accepting: AbortOnDropHandle<()>,
}

impl Front {
    async fn of(stub: &Stub, acceptor: TlsAcceptor) -> Self {
        let behind: SocketAddr = stub.url().socket_addrs(|| None).unwrap()[0];
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = Url::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        let handshakes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&handshakes);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(mut secured) = acceptor.accept(stream).await else { return };
                    counted.fetch_add(1, Ordering::Relaxed);
                    let mut plain = TcpStream::connect(behind).await.unwrap();
                    let _ = copy_bidirectional(&mut secured, &mut plain).await;
                });
            }
        });
        Self { url, handshakes, _accepting: AbortOnDropHandle::new(accepting) }
    }
}

fn loopback() -> SanType {
    SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

#[tokio::test]
async fn requests_go_over_kept_connections_to_a_target_whose_authority_is_given() {
    let (authority, stub) = (Authority::new(), Stub::start());
    let front = Front::of(&stub, authority.acceptor(loopback())).await;
    let mut plan = plan(closed(3, 0.01, 1, &get_user()), front.url.clone());
    plan.trust = authority.trusted();
    let ran = drive(plan).await;
    assert_eq!(ran.all_failures(), 0, "{:?}", ran.failures("get-user"));
    assert!(ran.endpoint("get-user").latency.count() > 6, "more requests than connections");
    assert!(!ran.endpoint("get-user").stages.is_empty());
    assert_eq!(front.handshakes.load(Ordering::Relaxed), 3, "one a virtual user, set-up included");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_refused_with_the_cause_and_what_to_do() {
    let (authority, stub) = (Authority::new(), Stub::start());
    let front = Front::of(&stub, authority.acceptor(loopback())).await;
    for trust in [Trust::default(), Authority::new().trusted()] {
        let checks = verify(&front.url, &trust, "test", Patience::default()).await;
        let wrong = &checks["register"];
        assert!(wrong.contains("invalid peer certificate") && wrong.contains("--target-ca"), "{wrong}");
    }
    let refused = drive_watched(plan(closed(2, 0.0, 5, &get_user()), front.url.clone()), |_, _| {}).await;
    let Err(LoadError::SetUp { reason, .. }) = refused else { panic!("it began") };
    assert!(reason.starts_with("no answer (connect: invalid peer certificate"), "{reason}");
    assert!(stub.requests().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_certificate_of_another_name_is_refused() {
    let (authority, stub) = (Authority::new(), Stub::start());
    let name = SanType::DnsName("elsewhere.example".try_into().unwrap());
    let front = Front::of(&stub, authority.acceptor(name)).await;
    let checks = verify(&front.url, &authority.trusted(), "test", Patience::default()).await;
    let wrong = &checks["register"];
    assert!(wrong.contains("not valid for name") && wrong.contains("elsewhere.example"), "{wrong}");
}
