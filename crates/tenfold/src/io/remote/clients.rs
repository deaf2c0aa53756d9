//! The HTTP clients that everything shares: their time-outs, their proxies, and which addresses they go to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, OnceLock};
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

/// Each made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Clients {
    any: OnceLock<Client>,
    any_sending: OnceLock<Client>,
    near: OnceLock<Client>,
    near_sending: OnceLock<Client>,
    public: OnceLock<Client>,
    names: Names,
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
    /// `sends`: requests that bring something, for which the clock of an answer would run while they are still on their way.
    /// Whoever makes them limits them.
    pub(super) fn get(&self, reach: Reach, sends: bool) -> Result<Client, reqwest::Error> {
        let (place, build): (_, fn() -> reqwest::ClientBuilder) = match (reach, sends) {
            (Reach::Any, false) => (&self.any, builder),
            (Reach::Any, true) => (&self.any_sending, sending),
            (Reach::Near, false) => (&self.near, || builder().no_proxy()),
            (Reach::Near, true) => (&self.near_sending, || sending().no_proxy()),
            (Reach::Public, _) => (&self.public, || {
                builder().dns_resolver(Arc::new(PublicNames))
            }),
        };
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        // Of two that are made at once, one is kept.
        let build = build();
        let build = match reach {
            Reach::Any => build.dns_resolver(Arc::new(self.names.clone())),
            Reach::Near | Reach::Public => build,
        };
        let made = build.build()?;
        Ok(place.get_or_init(|| made).clone())
    }

    /// Whether all addresses that this name was found to have are inside of private networks.
    pub(super) fn is_private(&self, host: &str) -> bool {
        let found = self.names.0.lock().ok();
        found.is_some_and(|found| found.get(host).copied().unwrap_or(false))
    }
}

/// Looks names up and remembers whether what was found is private: of the addresses that connections are made to, and not of
/// those that somebody answers with another time.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<LookupMap<String, bool>>>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = look_up(&name).await?;
            let is_private = found.iter().all(|address| !is_public(address.ip()));
            if let Ok(mut known) = names.0.lock() {
                let all = known.entry(name.as_str().to_owned()).or_insert(is_private);
                *all &= is_private;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

async fn look_up(name: &Name) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect())
}

fn builder() -> reqwest::ClientBuilder {
    sending().read_timeout(SILENCE)
}

fn sending() -> reqwest::ClientBuilder {
    // A program may have chosen another one before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("tenfold/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT)
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
            let host = name.as_str();
            let found = look_up(&name).await?;
            let public = |address: &SocketAddr| is_public(address.ip());
            let addresses: Vec<_> = if is_proxy(host) {
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
        IpAddr::V6(v6) => match within(v6) {
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

/// The address of the older kind that stands in one of the newer: mapped, compatible, of a translation (64:ff9b::/96, RFC 6052)
/// or of a tunnel (2002::/16, RFC 3056).
fn within(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(from(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
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
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::1",
            "::",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "8.8.8.8",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
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

    #[test]
    fn the_clock_of_an_answer_does_not_run_while_something_is_sent() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 1024]);
                    std::thread::sleep(Duration::from_millis(200));
                    let _ = stream.write_all(b"HTTP/1.1 204 x\r\n\r\n");
                });
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let ask = |client: reqwest::ClientBuilder| {
            let client = client.no_proxy().build().unwrap();
            let sent = async { client.put(&url).body("x").send().await };
            runtime.as_ref().unwrap().block_on(sent)
        };
        assert!(ask(sending()).unwrap().status().is_success());
        let impatient = builder().read_timeout(Duration::from_millis(20));
        assert!(ask(impatient).unwrap_err().is_timeout());
    }
}
