//! Who is answered: pages of this server alone, and only those that know the token.
//!
//! Listening on loopback keeps other machines out, not other pages of the same browser. A page that makes its own name point
//! to this machine (DNS rebinding) is known by the `Host` that it asks for, one that merely links here by `Sec-Fetch-Site` and
//! `Origin`, and other programs of the machine do not have the token. There is no cookie, because all ports of a machine share
//! cookies.

use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::http::{Refused, Request};

/// The names of this machine, and the secrets.
pub(super) struct Gate {
    hosts: Vec<String>,
    token: String,
    code: Mutex<Code>,
}

/// What is exchanged for the token, once.
struct Code {
    text: String,
    until: Option<Instant>,
    is_used: bool,
}

impl Gate {
    /// A gate with new secrets, and the code that opens it, which is good for a while or until it is used.
    pub(super) fn new(life: Option<Duration>, allowed: &[String]) -> io::Result<(Self, String)> {
        let (code, token) = (random()?, random()?);
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let allowed = allowed.iter().map(|name| name.to_ascii_lowercase());
        let gate = Self {
            hosts: hosts.into_iter().chain(allowed).collect(),
            token,
            code: Mutex::new(Code {
                text: code.clone(),
                until: life.map(|life| Instant::now() + life),
                is_used: false,
            }),
        };
        Ok((gate, code))
    }

    /// Refuses what comes from elsewhere.
    pub(super) fn check_origin(&self, request: &Request) -> Result<(), Refused> {
        let mut hosts = request.all("host");
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) if self.is_known(host) => host,
            _ => return Err(Refused(421, "this server has another name")),
        };
        let is_own = |site: &str| matches!(site, "same-origin" | "none");
        if !request.all("sec-fetch-site").all(is_own) {
            return Err(Refused(403, "other sites get no answer"));
        }
        let own = [format!("http://{host}"), format!("https://{host}")];
        if !request
            .all("origin")
            .all(|origin| own.iter().any(|own| own == origin))
        {
            return Err(Refused(403, "other origins get no answer"));
        }
        Ok(())
    }

    /// Refuses whoever does not know the token.
    pub(super) fn check_token(&self, request: &Request) -> Result<(), Refused> {
        let mut given = request.all("authorization");
        match (given.next(), given.next()) {
            (Some(given), None) if is_same(given, &format!("Bearer {}", self.token)) => Ok(()),
            _ => Err(Refused(401, "open the address that `tenfold view` prints")),
        }
    }

    /// Gives the token for the code.
    pub(super) fn exchange(&self, request: &Request) -> Result<&str, Refused> {
        let mut code = self
            .code
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut given = request.all("authorization");
        match (given.next(), given.next()) {
            (Some(given), None) if is_same(given, &format!("Code {}", code.text)) => {}
            _ => return Err(Refused(401, "this is not the code of this server")),
        }
        if code.is_used {
            let message =
                "this address was opened already; start `tenfold view` again for another page";
            return Err(Refused(403, message));
        }
        if code.until.is_some_and(|until| Instant::now() > until) {
            return Err(Refused(
                403,
                "this address has expired; start `tenfold view` again",
            ));
        }
        code.is_used = true;
        Ok(&self.token)
    }

    /// One of the names, with any port: those of forwarded connections differ.
    fn is_known(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => {
                name
            }
            _ => &host,
        };
        self.hosts.iter().any(|known| known == name)
    }
}

/// 128 random bits as hexadecimal digits.
fn random() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Takes as long whatever is wrong.
fn is_same(given: &str, wanted: &str) -> bool {
    let pairs = given.bytes().zip(wanted.bytes());
    let different = pairs.fold(0, |different, (a, b)| different | (a ^ b));
    given.len() == wanted.len() && different == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_known() {
        let (gate, code) = Gate::new(None, &["Proxy.example".to_owned()]).unwrap();
        assert_eq!(code.len(), 32);
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "LOCALHOST:1",
            "[::1]:9",
            "proxy.example:443",
        ] {
            assert!(gate.is_known(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:80:80",
            "localhost:",
            "localhost:x",
            "::1",
            "[::1]evil",
        ] {
            assert!(!gate.is_known(host), "{host}");
        }
    }

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("abc", "abd") && !is_same("ab", "abc") && !is_same("", "a"));
    }
}
