use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;

use super::*;
use crate::tls::config::provider;

const SUBJECT: Subject = Subject {
    common_name: "joinprobe",
    organisation: "nobody",
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, words: &str) {
        let status = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .expect("openssl is needed");
        assert!(status.status.success(), "openssl {words}: {status:?}");
    }

    /// A CA as openssl and kubeadm make them.
    fn authority(&self, kind: &str) {
        self.openssl(&format!(
            "req -x509 -newkey {kind} -noenc -keyout ca.key -out ca.crt -days 30 -subj /O=Example/CN=etcd-ca -addext \
             keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign"
        ));
    }

    fn mint(&self) -> Result<Arc<ClientIdentity>, CredentialError> {
        mint(&self.at("ca.crt"), &self.at("ca.key"), SUBJECT)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }

    fn refusal(&self) -> String {
        self.mint().err().unwrap().to_string()
    }
}

fn accepted(folder: &Folder, identity: &ClientIdentity) {
    let mut roots = RootCertStore::empty();
    let pem = std::fs::read(folder.at("ca.crt")).unwrap();
    roots
        .add(CertificateDer::from_pem_slice(&pem).unwrap())
        .unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .unwrap();
    let certified = identity.certified();
    certified.keys_match().unwrap();
    verifier
        .verify_client_cert(&certified.cert[0], &[], UnixTime::now())
        .unwrap();
}

#[test]
fn signs_with_every_usual_kind_of_key() {
    for kind in [
        "rsa:2048",
        "ec -pkeyopt ec_paramgen_curve:P-256",
        "ec -pkeyopt ec_paramgen_curve:P-384",
        "ed25519",
    ] {
        let folder = Folder::new();
        folder.authority(kind);
        accepted(&folder, &folder.mint().unwrap());
        if kind != "ed25519" {
            // PKCS#1, kubeadm's form, and SEC1.
            folder.openssl("pkey -in ca.key -traditional -out ca.old");
            std::fs::rename(folder.at("ca.old"), folder.at("ca.key")).unwrap();
            let text = std::fs::read_to_string(folder.at("ca.key")).unwrap();
            assert!(text.contains("RSA PRIVATE KEY") || text.contains("EC PRIVATE KEY"));
            accepted(&folder, &folder.mint().unwrap());
        }
        assert_eq!(folder.files(), 2, "nothing is written");
    }
}

#[test]
fn lives_for_minutes_and_says_whose_it_is() {
    let folder = Folder::new();
    folder.authority("rsa:2048");
    let identity = folder.mint().unwrap();
    let facts = identity.facts();
    assert_eq!(facts.subject, "O=nobody, CN=joinprobe");
    assert!(facts.allows_client && !facts.is_ca && facts.names.is_empty());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let now = i64::try_from(now).unwrap();
    assert!(
        (facts.not_after - now - 300).abs() < 30,
        "{}",
        facts.period()
    );
    assert_eq!(facts.not_after - facts.not_before, 360);
    assert!(
        identity
            .certificate_path()
            .to_string_lossy()
            .starts_with("minted from")
    );
}

#[test]
fn refuses_with_file_reason_and_remedy() {
    let folder = Folder::new();
    folder.authority("rsa:2048");
    folder.openssl("genrsa -out other.key 2048");
    std::fs::rename(folder.at("ca.key"), folder.at("right.key")).unwrap();
    let missing = folder.refusal();
    assert!(
        missing.contains("CA key") && missing.contains("check the path"),
        "{missing}"
    );
    for (text, reason) in [
        (
            std::fs::read_to_string(folder.at("other.key")).unwrap(),
            "does not belong",
        ),
        (
            std::fs::read_to_string(folder.at("ca.crt")).unwrap(),
            "no private key",
        ),
        (String::new(), "empty"),
        ("rubbish".to_owned(), "not PEM"),
    ] {
        std::fs::write(folder.at("ca.key"), text).unwrap();
        let refusal = folder.refusal();
        assert!(
            refusal.contains(reason) && refusal.contains("ca.key"),
            "{refusal}"
        );
    }
    std::fs::rename(folder.at("right.key"), folder.at("ca.key")).unwrap();
    folder.openssl("pkey -in ca.key -aes256 -passout pass:x -out locked.key");
    std::fs::rename(folder.at("locked.key"), folder.at("ca.key")).unwrap();
    let locked = folder.refusal();
    assert!(locked.contains("encrypted"), "{locked}");
}
