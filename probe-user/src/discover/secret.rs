//! Text that must never be shown.

use zeroize::Zeroizing;

/// A token or key as it stood in a file. It is wiped when dropped, and there is no way to print it by accident:
///
/// ```compile_fail
/// fn show(secret: &probe_user::discover::Secret) -> String {
///     format!("{secret:?}")
/// }
/// ```
///
/// ```compile_fail
/// fn show(secret: &probe_user::discover::Secret) -> String {
///     secret.to_string()
/// }
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a copy of `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A bootstrap token, `ID.SECRET`: six and sixteen lower-case letters and digits.
#[derive(Clone)]
pub struct BootstrapToken {
    id: String,
    secret: Secret,
}

impl BootstrapToken {
    /// Splits a token; `None` when it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let plain = |part: &str, length| {
            part.len() == length
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        };
        (plain(id, 6) && plain(secret, 16)).then(|| Self {
            id: id.to_owned(),
            secret: Secret::new(secret),
        })
    }

    /// The public part, which names the token inside the cluster.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The part nobody may see.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_kubeadm_takes() {
        let token = BootstrapToken::parse("abcdef.0123456789abcdef").unwrap();
        assert_eq!(token.id(), "abcdef");
        assert_eq!(token.secret().expose(), "0123456789abcdef");
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            ".",
            "abcdef",
            "abcdef.",
            "abcdef.0123456789abcde",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcdef0",
            "abcde\u{e9}.0123456789abcdef",
            "abcdef.0123456789abcdef ",
        ] {
            assert!(BootstrapToken::parse(text).is_none(), "{text}");
        }
    }
}
