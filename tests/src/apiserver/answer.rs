//! What is answered.

use std::collections::HashMap;

/// A status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Plain text.
    #[must_use]
    pub fn text(status: u16, body: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.to_owned(),
        }
    }

    /// JSON.
    #[must_use]
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.to_string(),
        }
    }

    /// What `/readyz` says while the server cannot reach its etcd.
    #[must_use]
    pub fn not_ready() -> Self {
        Self::text(
            503,
            "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n",
        )
    }

    /// What a server with anonymous access turned off says.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::status_object(401, "Unauthorized", "Unauthorized")
    }

    /// What a server says that lets anonymous clients in but not to this path.
    #[must_use]
    pub fn forbidden(method: &str, path: &str) -> Self {
        let verb = method.to_lowercase();
        let message = format!("forbidden: User \"system:anonymous\" cannot {verb} path \"{path}\"");
        Self::status_object(403, "Forbidden", &message)
    }

    fn status_object(code: u16, reason: &str, message: &str) -> Self {
        Self::json(
            code,
            &serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": message, "reason": reason, "code": code,
            }),
        )
    }
}

/// What an anonymous client may read by default (cluster role `system:public-info-viewer`).
pub(super) fn of_a_ready_server() -> HashMap<String, Answer> {
    let version = serde_json::json!({
        "major": "1", "minor": "28", "gitVersion": "v1.28.0", "platform": "linux/amd64",
    });
    let mut answers: HashMap<String, Answer> = ["/readyz", "/livez", "/healthz"]
        .map(|path| (path.to_owned(), Answer::text(200, "ok")))
        .into();
    answers.insert("/version".to_owned(), Answer::json(200, &version));
    answers
}
