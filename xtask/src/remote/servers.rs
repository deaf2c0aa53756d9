//! Real servers on this machine: installed under `target/servers`, started on free ports, and ended by their ids.

use crate::Result;
use crate::project::{self, Project};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) const KEY: &str = "tenfold";
pub(crate) const SECRET: &str = "tenfold-secret";

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Where it has its files.
    pub(crate) folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(command: &mut Command, port: u16, folder: &Path) -> Result<Self> {
        let log = fs::File::create(folder.with_extension("log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = Self {
            child,
            port,
            folder: folder.to_owned(),
        };
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                return Err(format!(
                    "it ended with {status}; see {}",
                    folder.with_extension("log").display()
                )
                .into());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err("it did not answer for a minute".into())
    }
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// An empty folder for what a server keeps.
fn folder(project: &Project, name: &str) -> Result<PathBuf> {
    let folder = project.target.join("servers/run").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// S3 over files: conditional puts and completions.
pub(crate) fn s3s(project: &Project) -> Result<Server> {
    let tools = project.target.join("servers");
    let program = tools.join("bin/s3s-fs");
    if !program.is_file() {
        eprintln!("installing s3s-fs, which takes some minutes");
        let mut cargo = project::cargo(&project.root);
        cargo.args([
            "install",
            "--quiet",
            "--debug",
            "s3s-fs",
            "--version",
            "0.14.1",
            "--features",
            "binary",
            "--root",
        ]);
        project::status(cargo.arg(&tools))?;
    }
    let (port, folder) = (free_port()?, folder(project, "s3s-fs")?);
    fs::create_dir_all(folder.join("bucket"))?;
    let port_text = port.to_string();
    let options = [
        "--host",
        "127.0.0.1",
        "--port",
        &port_text,
        "--access-key",
        KEY,
        "--secret-key",
        SECRET,
    ];
    Server::start(
        Command::new(program).args(options).arg(&folder),
        port,
        &folder,
    )
}

/// S3 in memory, with lists of uploads.
pub(crate) fn moto(project: &Project) -> Result<Server> {
    let python = project.environment(&["moto[server]"], None)?;
    let (port, folder) = (free_port()?, folder(project, "moto")?);
    let port_text = port.to_string();
    let server = Server::start(
        Command::new(python).args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port_text]),
        port,
        &folder,
    )?;
    let url = format!("http://127.0.0.1:{port}/bucket");
    project::status(Command::new("curl").args([
        "--silent",
        "--show-error",
        "--fail",
        "-X",
        "PUT",
        &url,
    ]))?;
    Ok(server)
}

/// Azure's emulator, with a container.
pub(crate) fn azurite(project: &Project) -> Result<Server> {
    let modules = project.target.join("servers/azurite");
    let program = modules.join("node_modules/.bin/azurite-blob");
    if !program.is_file() {
        eprintln!("installing azurite");
        fs::create_dir_all(&modules)?;
        fs::write(modules.join("package.json"), "{}")?;
        project::status(
            Command::new("npm")
                .args(["install", "--silent", "azurite"])
                .current_dir(&modules),
        )?;
    }
    let (port, folder) = (free_port()?, folder(project, "azurite")?);
    let port_text = port.to_string();
    let options = [
        "--blobPort",
        &port_text,
        "--disableTelemetry",
        "--skipApiVersionCheck",
        "--silent",
        "--location",
    ];
    let server = Server::start(
        Command::new(program).args(options).arg(&folder),
        port,
        &folder,
    )?;
    let script = project.root.join("xtask/remote/container.js");
    project::status(Command::new("node").arg(script).arg(&port_text))?;
    Ok(server)
}

/// A web server: `/files` with ranges, `/whole` without, `/led` with redirects, and all of them over TLS on the second port. It
/// is a Hub, too, with a repository that anybody may read and one that needs a token and leads elsewhere.
pub(crate) fn nginx(project: &Project) -> Result<(Server, u16)> {
    let tools = project.target.join("servers/nginx");
    let program = match Path::new("/usr/sbin/nginx") {
        installed if installed.is_file() => installed.to_owned(),
        _ => tools.join("usr/sbin/nginx"),
    };
    if !program.is_file() {
        fs::create_dir_all(&tools)?;
        let script = "apt-get download nginx && dpkg -x nginx_*.deb .";
        project::status(Command::new("sh").args(["-c", script]).current_dir(&tools))?;
    }
    let (port, tls, folder) = (free_port()?, free_port()?, folder(project, "nginx")?);
    fs::create_dir_all(folder.join("files"))?;
    fs::create_dir_all(folder.join("logs"))?;
    certificates(&folder)?;
    let root = folder.display();
    let places = format!(
        "location /files/ {{ root {root}; }}
         location /whole/ {{ alias {root}/files/; max_ranges 0; }}
         location /org/model/resolve/main/ {{ alias {root}/files/; }}
         location = /api/models/org/model/tree/main {{ default_type application/json;
           return 200 '[{{\"type\":\"file\",\"path\":\"local.safetensors\",\"size\":1}}]'; }}
         location /org/gated/resolve/main/ {{ if ($http_authorization != \"Bearer {SECRET}\") {{ return 401; }}
           rewrite ^/org/gated/resolve/main/(.*)$ /files/$1 redirect; }}
         location /led/ {{ rewrite ^/led/(.*)$ /files/$1 redirect; }}
         location /down/ {{ return 302 http://127.0.0.1:{port}/files/; }}"
    );
    let config = format!(
        "daemon off; pid {root}/pid; error_log {root}/logs/error.log; events {{ }}
         http {{ access_log off; client_body_temp_path {root}; proxy_temp_path {root}; fastcgi_temp_path {root};
         uwsgi_temp_path {root}; scgi_temp_path {root}; default_type application/octet-stream;
         server {{ listen 127.0.0.1:{port}; {places} }}
         server {{ listen 127.0.0.1:{tls} ssl; ssl_certificate {root}/leaf.pem; ssl_certificate_key {root}/leaf.key; {places} }} }}"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(&folder).arg("-c").arg(&file);
    Ok((Server::start(&mut command, port, &folder)?, tls))
}

/// An authority and a certificate of it for this machine: a lone self-signed one is refused.
fn certificates(folder: &Path) -> Result<()> {
    let openssl = |args: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(args).current_dir(folder).stderr(Stdio::null());
        project::status(&mut command)
    };
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=tenfold test authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ])?;
    openssl(&[
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "leaf.key",
        "-out",
        "leaf.csr",
    ])?;
    fs::write(
        folder.join("names"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
    )?;
    openssl(&[
        "x509",
        "-req",
        "-in",
        "leaf.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        "leaf.pem",
    ])
}
