//! Files that are damaged, encrypted, or something else entirely.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use probe_user::tls::{CaBundle, ClientIdentity};

use crate::files::Files;

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
    let Some(files) = Files::new()? else {
        return Ok(());
    };
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
    let Some(files) = Files::new()? else {
        return Ok(());
    };
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
