//! Certificates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use probe_user::tls::{CaBundle, ClientIdentity, ClientTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A directory that goes away with the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = std::env::temp_dir().join(format!(
            "joinprobe-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key, in memory and on disk.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub der: rcgen::Certificate,
    pub signer: KeyPair,
}

/// A CA with its files.
pub struct Pki {
    pub dir: Scratch,
    pub ca: CertifiedIssuer<'static, KeyPair>,
    pub ca_file: PathBuf,
}

impl Pki {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = Scratch::new();
        let ca_file = dir.write("ca.crt", ca.pem());
        Self { dir, ca, ca_file }
    }

    /// Issues a certificate for client and server use.
    pub fn issue(&self, name: &str, sans: &[&str]) -> Pair {
        self.issue_with(name, sans, |_| {})
    }

    pub fn issue_with(
        &self,
        name: &str,
        sans: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Pair {
        let sans: Vec<String> = sans.iter().map(|&san| san.to_owned()).collect();
        let mut params = CertificateParams::new(sans).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let signer = KeyPair::generate().unwrap();
        let der = params.signed_by(&signer, &self.ca).unwrap();
        Pair {
            certificate: self.dir.write(&format!("{name}.crt"), der.pem()),
            key: self
                .dir
                .write(&format!("{name}.key"), signer.serialize_pem()),
            der,
            signer,
        }
    }

    pub fn bundle(&self) -> Arc<CaBundle> {
        CaBundle::load(&self.ca_file).unwrap()
    }

    /// Trusts this CA and shows nothing.
    pub fn trust(&self) -> ClientTls {
        ClientTls::new(Some(self.bundle()), None)
    }

    /// Trusts this CA and shows `pair`.
    pub fn trust_and_show(&self, pair: &Pair) -> ClientTls {
        ClientTls::new(Some(self.bundle()), Some(identity(pair)))
    }
}

pub fn identity(pair: &Pair) -> Arc<ClientIdentity> {
    ClientIdentity::load(Path::new(&pair.certificate), Path::new(&pair.key)).unwrap()
}
