//! An API server from the directory that KUBEBUILDER_ASSETS names, for one test.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use kube::{Client, Config, config::Kubeconfig};
use rcgen::KeyPair;
use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);

/// A running API server and its etcd; dropping it stops both and removes their files.
pub struct ApiServer {
    pub client: Client,
    _programs: Vec<Program>,
    _folder: TempDir,
}

impl ApiServer {
    pub async fn start() -> Result<Self> {
        let assets = std::env::var("KUBEBUILDER_ASSETS")
            .context("KUBEBUILDER_ASSETS is not set: it names a directory with etcd and kube-apiserver")?;
        let assets = Path::new(&assets);
        let folder = tempfile::tempdir()?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let [client_port, peer_port, secure_port] = free_ports()?;
        let token = folder
            .path()
            .file_name()
            .unwrap_or_default()
            .display()
            .to_string();
        let key = KeyPair::generate()?;
        fs::write(file("service-account.key"), key.serialize_pem())?;
        fs::write(file("service-account.pub"), key.public_key_pem())?;
        fs::write(
            file("tokens.csv"),
            format!("{token},admin,admin,system:masters\n"),
        )?;

        let mut programs = vec![
            Program::start(
                assets.join("etcd"),
                &folder,
                &[
                    format!("--data-dir={}", file("etcd")),
                    format!("--listen-client-urls=http://127.0.0.1:{client_port}"),
                    format!("--advertise-client-urls=http://127.0.0.1:{client_port}"),
                    format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
                    "--unsafe-no-fsync=true".to_owned(),
                ],
            )?,
            Program::start(
                assets.join("kube-apiserver"),
                &folder,
                &[
                    format!("--etcd-servers=http://127.0.0.1:{client_port}"),
                    format!("--cert-dir={}", file("certificates")),
                    "--bind-address=127.0.0.1".to_owned(),
                    "--advertise-address=127.0.0.1".to_owned(),
                    format!("--secure-port={secure_port}"),
                    format!("--token-auth-file={}", file("tokens.csv")),
                    "--authorization-mode=RBAC".to_owned(),
                    "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                    format!("--service-account-key-file={}", file("service-account.pub")),
                    format!(
                        "--service-account-signing-key-file={}",
                        file("service-account.key")
                    ),
                    "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                    "--disable-admission-plugins=ServiceAccount".to_owned(),
                ],
            )?,
        ];
        // The API server creates this certificate when it starts.
        let certificate = file("certificates/apiserver.crt");
        let kubeconfig = format!(
            "clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{secure_port}', certificate-authority: '{certificate}'}}}}]
users: [{{name: admin, user: {{token: '{token}'}}}}]
contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]
current-context: test"
        );
        let deadline = Instant::now() + START;
        loop {
            for program in &mut programs {
                program.check()?;
            }
            match ready(&kubeconfig).await {
                Ok(client) => {
                    return Ok(Self {
                        client,
                        _programs: programs,
                        _folder: folder,
                    });
                }
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context("kube-apiserver is not ready"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

async fn ready(kubeconfig: &str) -> Result<Client> {
    let config =
        Config::from_custom_kubeconfig(Kubeconfig::from_yaml(kubeconfig)?, &Default::default()).await?;
    let client = Client::try_from(config)?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await?;
    Ok(client)
}

/// A child process that writes to a file of its own, and is killed when it is dropped.
struct Program {
    path: PathBuf,
    output: PathBuf,
    child: Child,
}

impl Program {
    fn start(path: PathBuf, folder: &TempDir, flags: &[String]) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().display().to_string();
        let output = folder.path().join(name + ".log");
        let log = fs::File::create(&output)?;
        let child = Command::new(&path)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", path.display()))?;
        Ok(Self { path, output, child })
    }

    /// Return an error with the output of the program if it has ended.
    fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "{} ended, {status}:\n{}",
                self.path.display(),
                fs::read_to_string(&self.output)?
            );
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Return free ports. All are held until the last is known, so that they differ.
fn free_ports() -> Result<[u16; 3]> {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}
