//! What an answer to `GET /readyz` says, and who gave it.

use http::StatusCode;

use crate::probe::text;

/// What is wrong with an answer: the result's word, and the sentence after the target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) result: &'static str,
    pub(super) text: String,
}

/// `None` for an answer that an API server gives when all is well, which includes that it turns anonymous requests away.
pub(super) fn complaint(status: StatusCode, body: &[u8]) -> Option<Complaint> {
    let code = status.as_u16();
    let said = said(body);
    let complaint = |result, text| Some(Complaint { result, text });
    if is_web_page(body) && !is_gateways(status) {
        return complaint(
            "request_failed",
            format!(
                "answered GET /readyz with a web page (HTTP {code}: {said}), as no API server does: something else \
                 listens there, or a proxy answers in its place; check the address, and let a proxy pass TCP through"
            ),
        );
    }
    match status {
        status if status.is_success() => None,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => None,
        status if is_gateways(status) && !is_api_servers(body) => complaint(
            "no_backend",
            format!(
                "is a load balancer without a healthy API server behind it (HTTP {code}: {said}); check its backends \
                 and their health check, and the API servers' logs"
            ),
        ),
        status if status.is_server_error() => complaint(
            "unhealthy",
            format!("answers, but is not ready (HTTP {code}: {said}); see the API server's log"),
        ),
        StatusCode::TOO_MANY_REQUESTS => complaint(
            "unhealthy",
            format!(
                "turns requests away (HTTP 429: {said}): the API server is overloaded; try again later"
            ),
        ),
        _ => complaint(
            "request_failed",
            format!(
                "answered GET /readyz with HTTP {code} ({said}), which is no API server's answer; check the address"
            ),
        ),
    }
}

/// What a proxy answers when it is who stands behind it that fails (RFC 9110 section 15.6).
fn is_gateways(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// An API server lists its checks, or answers with a `Status` object.
fn is_api_servers(body: &[u8]) -> bool {
    body.starts_with(b"[+]")
        || body.starts_with(b"[-]")
        || failing(body).is_some()
        || serde_json::from_slice(body)
            .is_ok_and(|object: serde_json::Value| object["kind"] == "Status")
}

fn is_web_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// The line that says what is wrong: `/readyz` marks failing checks with `[-]`, and a web page has a title.
fn said(body: &[u8]) -> String {
    let title = is_web_page(body).then(|| title(body)).flatten();
    let line = text::first_line(failing(body).or(title).unwrap_or(body));
    if line.is_empty() {
        "no text".to_owned()
    } else {
        line
    }
}

fn failing(body: &[u8]) -> Option<&[u8]> {
    body.split(|byte| *byte == b'\n')
        .find(|line| line.starts_with(b"[-]"))
}

/// A page's title, or else its first heading: servers that save on words have only that.
fn title(page: &[u8]) -> Option<&[u8]> {
    let lower = page.to_ascii_lowercase();
    ["title", "h1"].into_iter().find_map(|tag| {
        let from = find(&lower, format!("<{tag}>").as_bytes())? + tag.len() + 2;
        let length = find(&lower[from..], b"</")?;
        let text = page[from..from + length].trim_ascii();
        (!text.is_empty()).then_some(text)
    })
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_its_title() {
        for (page, expected) in [
            (
                "<html><head><TITLE>503 Service Unavailable</TITLE>",
                "503 Service Unavailable",
            ),
            (
                "<html><body><h1>503 Service Unavailable</h1>\nNo server is available",
                "503 Service Unavailable",
            ),
            ("<title></title><p>hm</p>", "<title></title><p>hm</p>"),
            ("<html><title>cut off", "<html><title>cut off"),
            ("\n", "no text"),
        ] {
            assert_eq!(said(page.as_bytes()), expected);
        }
    }

    #[test]
    fn a_load_balancer_is_told_from_an_api_server() {
        let result = |status, body: &str| {
            complaint(StatusCode::from_u16(status).unwrap(), body.as_bytes())
                .map(|complaint| complaint.result)
        };
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}"#;
        for (code, body, expected) in [
            (200, "ok", None),
            (
                200,
                "<!DOCTYPE html><title>Sign in</title>",
                Some("request_failed"),
            ),
            (403, status, None),
            (403, "<html>no</html>", Some("request_failed")),
            (500, "[+]ping ok\n[-]etcd failed\n", Some("unhealthy")),
            (503, "[-]shutdown failed\n", Some("unhealthy")),
            (503, status, Some("unhealthy")),
            (503, "<html>", Some("no_backend")),
            (503, "no healthy upstream", Some("no_backend")),
            (502, "", Some("no_backend")),
            (504, "{\"kind\":", Some("no_backend")),
        ] {
            assert_eq!(result(code, body), expected, "{code} {body}");
        }
    }
}
