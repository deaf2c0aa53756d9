//! The HTTP clients that everything shares: their time-outs, their proxies, and which addresses they go to.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use crate::prelude::*;

const CONNECT: Duration = Duration::from_secs(5);
/// Without a byte.
const SILENCE: Duration = Duration::from_secs(30);
/// Connections that wait for the next request.
const IDLE: usize = 64;

/// Three of them, each made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Clients {
    any: OnceLock<Client>,
    near: OnceLock<Client>,
    public: OnceLock<Client>,
}

/// Where a request may go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reach {
    /// Where its URL says, through a proxy where there is one.
    Any,
    /// To this machine, or to what a cloud has for it: never through a proxy.
    Near,
    /// To public addresses alone, whatever names mean: what a server says, and no person.
    Public,
}

impl Clients {
    pub(super) fn get(&self, reach: Reach) -> Result<Client, reqwest::Error> {
        let (client, build): (_, fn() -> _) = match reach {
            Reach::Any => (&self.any, || builder().build()),
            Reach::Near => (&self.near, || builder().no_proxy().build()),
            Reach::Public => (&self.public, || {
                builder().dns_resolver(Arc::new(PublicNames)).build()
            }),
        };
        if let Some(client) = client.get() {
            return Ok(client.clone());
        }
        // Of two that are made at once, one is kept.
        let made = build()?;
        Ok(client.get_or_init(|| made).clone())
    }
}

fn builder() -> reqwest::ClientBuilder {
    // A program may have chosen another one before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("tenfold/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .pool_max_idle_per_host(IDLE)
        // Several connections carry more than one with several streams.
        .http1_only()
        .tcp_nodelay(true)
}

/// Looks names up and leaves out what is not public.
#[derive(Debug)]
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let public = |address: &SocketAddr| is_public(address.ip());
            let addresses: Vec<_> = if is_proxy(&host) {
                found
            } else {
                found.into_iter().filter(public).collect()
            };
            if addresses.is_empty() {
                let message = format!("{host} has no public address");
                return Err(std::io::Error::other(message).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Whether the user's environment names it as a proxy, which may well be inside of a private network.
fn is_proxy(host: &str) -> bool {
    let names = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    names.iter().any(|name| {
        let value = std::env::var(name).unwrap_or_default();
        let url = url::Url::parse(&value).or_else(|_| url::Url::parse(&format!("http://{value}")));
        url.is_ok_and(|url| url.host_str() == Some(host))
    })
}

/// Whether anybody may be there: no address of this machine, of a private network, or that means something else.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_special = v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation();
            !(is_special || is_shared || a == 0 || a >= 240)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            None => {
                !(v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_multicast()
                    || v6.is_unique_local()
                    || v6.is_unicast_link_local())
            }
        },
    }
}

/// Whether a host is this machine, by what it is called.
pub(super) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || literal(host).is_some_and(|address| address.is_loopback())
}

/// An address that is written as one.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// Whether it is where clouds give credentials to their own machines.
pub(super) fn is_metadata(host: &str) -> bool {
    const HOSTS: [&str; 7] = [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "metadata.google.internal",
        "metadata",
    ];
    let host = host.trim_start_matches('[').trim_end_matches(']');
    HOSTS.contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:10.0.0.1",
            "::",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["8.8.8.8", "100.128.0.1", "172.32.0.1", "2606:4700::1111"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn this_machine_has_many_names() {
        for host in [
            "localhost",
            "LOCALHOST",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "::1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.org", "10.0.0.1", "example.org"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
