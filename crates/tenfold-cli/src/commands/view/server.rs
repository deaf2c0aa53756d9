//! Connections, and what they are answered.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenfold::Error;
use tenfold_view::{Kind, View};

use super::gate::Gate;
use super::http::{Connection, Head, Refused, Request};

/// Connections at the same time: a page has six.
const MOST_CONNECTIONS: usize = 32;
/// Connections beyond them that are told so; any more are closed without a word.
const MOST_REFUSED: usize = 16;

pub(super) struct Server {
    view: View,
    gate: Gate,
    connections: AtomicUsize,
    /// Answers that are under way.
    active: AtomicUsize,
    /// When the last answer was given.
    last: Mutex<Instant>,
    is_over: AtomicBool,
}

impl Server {
    pub(super) fn new(view: View, gate: Gate) -> Self {
        Self {
            view,
            gate,
            connections: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Answers until nobody has asked for `idle`; for ever without it.
    pub(super) fn run(
        self: Arc<Self>,
        listeners: Vec<TcpListener>,
        idle: Option<Duration>,
    ) -> io::Result<()> {
        let mut addresses = Vec::new();
        for listener in &listeners {
            addresses.push(listener.local_addr()?);
        }
        let threads: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let server = self.clone();
                thread::spawn(move || server.accept(&listener))
            })
            .collect();
        if let Some(idle) = idle {
            self.wait(idle);
            self.is_over.store(true, Ordering::Relaxed);
            // Whoever waits for a connection sees that it is over when one comes.
            for address in addresses {
                let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
            }
        }
        for thread in threads {
            // A panic of one is no reason to end without a word.
            let _ = thread.join();
        }
        Ok(())
    }

    fn wait(&self, idle: Duration) {
        loop {
            let quiet = if self.active.load(Ordering::Relaxed) > 0 {
                Duration::ZERO
            } else {
                self.last().elapsed()
            };
            if quiet >= idle {
                return;
            }
            thread::sleep(idle - quiet);
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            // One that is gone already, or no more files: the next may come through.
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            let open = self.connections.load(Ordering::Relaxed);
            if open >= MOST_CONNECTIONS + MOST_REFUSED {
                // Enough of them are being told why.
                continue;
            }
            let server = self.clone();
            server.connections.fetch_add(1, Ordering::Relaxed);
            let is_full = open >= MOST_CONNECTIONS;
            let spawned = thread::Builder::new().spawn(move || {
                // A browser that goes away is no trouble of ours.
                let _ = server.serve(stream, is_full);
                server.connections.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                self.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn serve(&self, stream: TcpStream, is_full: bool) -> io::Result<()> {
        let mut connection = Connection::new(stream)?;
        if is_full {
            refuse(
                &mut connection,
                &Refused(503, "too many connections"),
                false,
            )?;
            connection.finish();
            return Ok(());
        }
        loop {
            let keeps_alive = match connection.next()? {
                None => return Ok(()),
                Some(Err(refused)) => {
                    refuse(&mut connection, &refused, false)?;
                    false
                }
                Some(Ok(request)) => {
                    self.active.fetch_add(1, Ordering::Relaxed);
                    let answered = self.answer(&mut connection, &request);
                    *self.last() = Instant::now();
                    self.active.fetch_sub(1, Ordering::Relaxed);
                    answered?;
                    request.keeps_alive
                }
            };
            if !keeps_alive {
                connection.finish();
                return Ok(());
            }
        }
    }

    fn answer(&self, connection: &mut Connection, request: &Request) -> io::Result<()> {
        if let Err(refused) = self.gate.check_origin(request) {
            return refuse(connection, &refused, request.keeps_alive);
        }
        let target = request.target.as_str();
        let path = target.split('?').next().unwrap_or_default();
        let Some(question) = target.strip_prefix("/api/") else {
            let name = if path == "/" {
                "index.html"
            } else {
                path.trim_start_matches('/')
            };
            return match tenfold_web::FILES.iter().find(|(known, ..)| *known == name) {
                Some((_, content_type, bytes)) => {
                    let head = Head {
                        status: 200,
                        content_type,
                        is_kept: true,
                        file_name: None,
                    };
                    send(connection, request, &head, bytes)
                }
                None => refuse(
                    connection,
                    &Refused(404, "there is nothing here"),
                    request.keeps_alive,
                ),
            };
        };
        if path == "/api/token" {
            return match self.gate.exchange(request) {
                Ok(token) => {
                    let document = format!("{{\"token\":\"{token}\"}}");
                    send(connection, request, &JSON, document.as_bytes())
                }
                Err(refused) => refuse(connection, &refused, request.keeps_alive),
            };
        }
        if let Err(refused) = self.gate.check_token(request) {
            return refuse(connection, &refused, request.keeps_alive);
        }
        if path == "/api/npy" {
            return self.save(connection, request, question);
        }
        let answer = self.view.call(question);
        let head = Head {
            status: status(answer.kind),
            content_type: match answer.kind {
                Kind::Binary | Kind::File => "application/octet-stream",
                _ => JSON.content_type,
            },
            ..JSON
        };
        send(connection, request, &head, &answer.bytes)
    }

    /// A file is sent as it is read.
    fn save(
        &self,
        connection: &mut Connection,
        request: &Request,
        question: &str,
    ) -> io::Result<()> {
        let saving = match self.view.saving(question) {
            Ok(saving) => saving,
            Err(answer) => {
                let head = Head {
                    status: status(answer.kind),
                    ..JSON
                };
                return send(connection, request, &head, &answer.bytes);
            }
        };
        let head = Head {
            status: 200,
            content_type: "application/octet-stream",
            is_kept: false,
            file_name: Some(saving.name()),
        };
        connection.head(&head, saving.len(), request.keeps_alive)?;
        if request.is_head {
            return Ok(());
        }
        let mut broken = None;
        let sent = saving.stream(&mut |piece| {
            connection.body(piece).map_err(|cause| {
                broken = Some(cause);
                Error::canceled()
            })
        });
        // What is promised cannot be sent any more: the browser sees a file that is cut off.
        sent.map_err(|error| broken.unwrap_or_else(|| io::Error::other(error.to_string())))
    }
}

const JSON: Head<'static> = Head {
    status: 200,
    content_type: "application/json",
    is_kept: false,
    file_name: None,
};

fn status(kind: Kind) -> u16 {
    match kind {
        Kind::Refusal => 422,
        Kind::Unknown => 404,
        _ => 200,
    }
}

fn send(
    connection: &mut Connection,
    request: &Request,
    head: &Head<'_>,
    bytes: &[u8],
) -> io::Result<()> {
    connection.head(head, bytes.len() as u64, request.keeps_alive)?;
    if request.is_head {
        return Ok(());
    }
    connection.body(bytes)
}

/// Says why, in the form that the page expects.
fn refuse(connection: &mut Connection, refused: &Refused, keeps_alive: bool) -> io::Result<()> {
    let Refused(status, message) = *refused;
    let document = serde_json::json!({"schema": "tenfold.error/1", "error": message}).to_string();
    let head = Head { status, ..JSON };
    connection.head(&head, document.len() as u64, keeps_alive)?;
    connection.body(document.as_bytes())
}
