//! Credential files as they are found: of every kind, damaged, encrypted, or something else entirely.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use probe_user::tls::{CaBundle, ClientIdentity, ClientTls, Validity};
use tempfile::TempDir;

/// Everything is made by openssl, whose files are what clusters hold.
struct Files(TempDir);

impl Files {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.at(name);
        fs::write(&path, contents)?;
        Ok(path)
    }

    fn openssl(&self, words: &str) -> Result<()> {
        let output = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .context("openssl is needed")?;
        ensure!(
            output.status.success(),
            "openssl {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// A self-signed certificate `NAME.crt` with a new key `NAME.key` of this kind.
    fn pair(&self, name: &str, kind: &str) -> Result<(PathBuf, PathBuf)> {
        self.openssl(&format!(
            "req -x509 -newkey {kind} -noenc -keyout {name}.key -out {name}.crt -days 30 -subj /CN={name}"
        ))?;
        Ok((
            self.at(&format!("{name}.crt")),
            self.at(&format!("{name}.key")),
        ))
    }
}

const KINDS: [(&str, &str); 4] = [
    ("rsa", "rsa:2048"),
    ("p256", "ec -pkeyopt ec_paramgen_curve:P-256"),
    ("p384", "ec -pkeyopt ec_paramgen_curve:P-384"),
    ("ed25519", "ed25519"),
];

#[test]
fn every_usual_kind_of_key() -> Result<()> {
    let files = Files::new()?;
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
    let files = Files::new()?;
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
    let files = Files::new()?;
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

/// Checks a refusal: one sentence, with the file, the reason and something to do, quickly and without secrets.
fn check(error: &dyn std::error::Error, path: &Path, reason: &str, started: Instant) {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(text.contains(reason), "`{reason}` in: {text}");
    assert!(text.contains("; "), "{text}");
    assert!(!text.contains('\n') && text.len() < 400, "{text}");
    assert!(!text.contains("MII") && !text.contains("MC4CAQ"), "{text}");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
}

fn damaged(files: &Files) -> Result<Vec<(PathBuf, &'static str)>> {
    symlink(files.at("loop-b"), files.at("loop-a"))?;
    symlink(files.at("loop-a"), files.at("loop-b"))?;
    symlink(files.at("gone"), files.at("dangling"))?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        files.at("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )?;
    let huge = fs::File::create(files.at("huge"))?;
    huge.set_len(100 << 20)?;
    Ok(vec![
        (files.at("nothing"), "No such file"),
        (files.at("dangling"), "No such file"),
        (files.at("loop-a"), "symbolic links"),
        (files.at(""), "directory"),
        (files.at("fifo"), "not a regular file"),
        ("/dev/zero".into(), "not a regular file"),
        (files.at("huge"), "larger than 1 MiB"),
        (files.write("empty", "")?, "empty"),
        (files.write("blank", " \n\t\n")?, "empty"),
        (files.write("text", "hello\n")?, "not PEM"),
        (
            files.write("binary", (0..=255u8).cycle().take(9000).collect::<Vec<_>>())?,
            "not PEM",
        ),
        (
            files.write(
                "utf16",
                "-----BEGIN CERTIFICATE-----"
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes)
                    .collect::<Vec<_>>(),
            )?,
            "not PEM",
        ),
        (
            files.write("base64", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=\n")?,
            "not PEM",
        ),
    ])
}

#[test]
fn refused_whatever_they_should_hold() -> Result<()> {
    let files = Files::new()?;
    let (certificate, key) = files.pair("good", "ed25519")?;
    for (path, reason) in damaged(&files)? {
        let started = Instant::now();
        check(&CaBundle::load(&path).unwrap_err(), &path, reason, started);
        check(
            &ClientIdentity::load(&path, &key).unwrap_err(),
            &path,
            reason,
            started,
        );
        check(
            &ClientIdentity::load(&certificate, &path).unwrap_err(),
            &path,
            reason,
            started,
        );
    }
    Ok(())
}

#[test]
fn refused_for_what_they_hold() -> Result<()> {
    let files = Files::new()?;
    let (certificate, key) = files.pair("good", "rsa:2048")?;
    let (other, _) = files.pair("other", "rsa:2048")?;
    let (_, ed25519) = files.pair("ed", "ed25519")?;
    let text = fs::read_to_string(&certificate)?;
    let key_text = fs::read_to_string(&key)?;
    files.openssl("x509 -in good.crt -outform der -out good.der")?;
    files.openssl("pkey -in good.key -aes256 -passout pass:secret -out pkcs8.enc")?;
    files.openssl("rsa -in good.key -traditional -aes256 -passout pass:secret -out pkcs1.enc")?;
    files.openssl("genrsa -out small.key 1024")?;
    files.openssl("req -x509 -key small.key -out small.crt -subj /CN=small")?;
    files.openssl("ecparam -name secp521r1 -genkey -noout -out p521.key")?;
    files.openssl("req -x509 -key p521.key -out p521.crt -subj /CN=p521")?;
    files.openssl("pkey -in good.key -pubout -out public.key")?;
    let half = text.len() / 2;
    let flipped = text.replacen("MII", "MXX", 1);

    let started = Instant::now();
    for (path, reason) in [
        (key.clone(), "holds no certificate"),
        (files.at("good.der"), "DER, not PEM"),
        (files.write("cut.crt", &text[..half])?, "damaged"),
        (files.write("flip.crt", &flipped)?, "damaged"),
        (files.write("star.crt", text.replace('M', "*"))?, "damaged"),
        (
            files.write("no-end.crt", text.replace("-----END", "-----BEGIN"))?,
            "damaged",
        ),
        (
            files.write("begin.crt", "-----BEGIN CERTIFICATE\nAAAA\n")?,
            "damaged",
        ),
        (
            files.write(
                "hollow.crt",
                "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            )?,
            "damaged",
        ),
        (
            files.write("second.crt", format!("{text}{flipped}"))?,
            "damaged",
        ),
    ] {
        check(&CaBundle::load(&path).unwrap_err(), &path, reason, started);
        if path.ends_with("second.crt") {
            assert!(
                CaBundle::load(&path)
                    .unwrap_err()
                    .to_string()
                    .contains("certificate 2")
            );
        }
        check(
            &ClientIdentity::load(&path, &key).unwrap_err(),
            &path,
            reason,
            started,
        );
    }
    for (path, reason) in [
        (certificate.clone(), "holds no private key"),
        (files.at("public.key"), "holds no private key"),
        (files.at("good.der"), "DER, not PEM"),
        (files.at("pkcs8.enc"), "encrypted"),
        (files.at("pkcs1.enc"), "encrypted"),
        (files.at("small.key"), "not supported"),
        (files.at("p521.key"), "not supported"),
        (
            files.write("cut.key", &key_text[..key_text.len() / 2])?,
            "damaged",
        ),
        (
            files.write("flip.key", key_text.replacen("MII", "MXX", 1))?,
            "damaged",
        ),
        (
            files.write("wrong.key", text.replace("CERTIFICATE", "RSA PRIVATE KEY"))?,
            "damaged",
        ),
        (
            files.write("begin.key", "-----BEGIN RSA PRIVATE KEY\nAAAA\n")?,
            "damaged",
        ),
    ] {
        let error = ClientIdentity::load(&certificate, &path).unwrap_err();
        check(&error, &path, reason, started);
    }
    for (certificate, key) in [(&other, &key), (&certificate, &ed25519)] {
        let error = ClientIdentity::load(certificate, key).unwrap_err();
        check(&error, key, "does not belong", started);
        assert!(
            error
                .to_string()
                .contains(&certificate.display().to_string())
        );
    }
    Ok(())
}
