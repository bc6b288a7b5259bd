//! Every usual kind of key and certificate, and what is read in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use probe_user::tls::{CaBundle, ClientIdentity, ClientTls, Validity};

use crate::files::Files;

const KINDS: [(&str, &str); 4] = [
    ("rsa", "rsa:2048"),
    ("p256", "ec -pkeyopt ec_paramgen_curve:P-256"),
    ("p384", "ec -pkeyopt ec_paramgen_curve:P-384"),
    ("ed25519", "ed25519"),
];

#[test]
fn every_usual_kind_of_key() -> Result<()> {
    let Some(files) = Files::new()? else {
        return Ok(());
    };
    for (name, kind) in KINDS {
        let (certificate, key) = files.pair(name, kind)?;
        let identity = ClientIdentity::load(&certificate, &key)?;
        assert_eq!(identity.facts().subject, format!("CN={name}"));
        assert_eq!(
            identity.facts().validity(SystemTime::now()),
            Validity::Valid
        );
        // The older forms: PKCS#1 and SEC1.
        if name != "ed25519" {
            files.openssl(&format!("pkey -in {name}.key -traditional -out {name}.old"))?;
            let text = fs::read_to_string(files.at(&format!("{name}.old")))?;
            assert!(text.contains("RSA PRIVATE KEY") || text.contains("EC PRIVATE KEY"));
            ClientIdentity::load(&certificate, &files.at(&format!("{name}.old")))?;
        }
        // As some editors save it.
        let text = fs::read_to_string(&certificate)?;
        let marked = files.at(&format!("{name}.marked"));
        fs::write(&marked, format!("\u{feff}{text}"))?;
        ClientIdentity::load(&marked, &key)?;
        assert_eq!(CaBundle::load(&marked)?.certificates().len(), 1);
        // Both in one file, with text around them, as kubelet-client-current.pem is.
        let both = format!(
            "\u{feff}Bag Attributes\r\n{}\nsome words\n{}",
            fs::read_to_string(&key)?,
            fs::read_to_string(&certificate)?
        );
        let both = files.write("both.pem", both)?;
        ClientIdentity::load(&both, &both)?;
        let shown = format!(
            "{identity:?} {:?}",
            ClientTls::new(None, Some(identity.clone()))
        );
        assert!(
            shown.contains(name) && !shown.contains("PRIVATE"),
            "{shown}"
        );
        assert!(shown.len() < 2000, "{shown}");
    }
    // What `ecparam -genkey` writes has its parameters first.
    files.openssl("ecparam -name prime256v1 -genkey -out params.key")?;
    files.openssl("req -x509 -key params.key -out params.crt -subj /CN=params")?;
    ClientIdentity::load(&files.at("params.crt"), &files.at("params.key"))?;
    Ok(())
}

#[test]
fn what_a_certificate_says() -> Result<()> {
    let Some(files) = Files::new()? else {
        return Ok(());
    };
    files.openssl(
        "req -x509 -newkey ed25519 -noenc -keyout s.key -out s.crt -days 3 -subj /O=team/CN=soon \
         -addext subjectAltName=DNS:a.example,IP:10.0.0.1,IP:fd00::1 -addext extendedKeyUsage=serverAuth \
         -addext basicConstraints=critical,CA:FALSE",
    )?;
    let identity = ClientIdentity::load(&files.at("s.crt"), &files.at("s.key"))?;
    let facts = identity.facts();
    assert_eq!(facts.names, ["a.example", "10.0.0.1", "fd00::1"]);
    assert!(facts.subject.contains("soon") && facts.issuer.contains("team"));
    assert!(!facts.allows_client && !facts.is_ca);
    let now = SystemTime::now();
    let day = Duration::from_hours(24);
    assert_eq!(facts.validity(now), Validity::ExpiresSoon);
    assert_eq!(facts.validity(now + 4 * day), Validity::Expired);
    assert_eq!(facts.validity(now - day), Validity::NotYetValid);
    assert_eq!(
        facts.period().len(),
        "2026-12-01T20:00:00Z to 2026-12-04T20:00:00Z".len()
    );

    assert!(!identity.key_open_to_others());
    fs::set_permissions(files.at("s.key"), fs::Permissions::from_mode(0o644))?;
    assert!(ClientIdentity::load(&files.at("s.crt"), &files.at("s.key"))?.key_open_to_others());
    Ok(())
}

#[test]
fn bundles() -> Result<()> {
    let Some(files) = Files::new()? else {
        return Ok(());
    };
    let mut bundle = String::new();
    for (name, kind) in KINDS {
        bundle += &fs::read_to_string(files.pair(name, kind)?.0)?;
    }
    let path = files.write("bundle.pem", bundle)?;
    let ca = CaBundle::load(&path)?;
    assert_eq!(ca.facts().len(), 4);
    assert!(ca.facts().iter().all(|facts| facts.is_ca));
    assert_eq!(ca.path(), path);
    Ok(())
}
