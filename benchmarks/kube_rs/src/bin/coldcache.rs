//! Fill a kube-rs store with one kind and say what that took.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use kube::runtime::{reflector, watcher, WatchStreamExt};
use kube::{Api, Client, Config, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

/// About two kilobytes of ordinary fields.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "bench.kubewright.dev", version = "v1", kind = "Sample", namespaced)]
#[kube(status = "SampleStatus", schema = "disabled")]
pub struct SampleSpec {
    replicas: i32,
    image: String,
    #[serde(default)]
    env: Vec<EnvVar>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

/// One name and value.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EnvVar {
    name: String,
    value: String,
}

/// What a controller would report.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SampleStatus {
    #[serde(default)]
    ready: i32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (started, startup) = (Instant::now(), cpu_time());
    let kubeconfig = std::env::args().nth(1).ok_or("give a kubeconfig")?;
    let config = Config::from_custom_kubeconfig(
        kube::config::Kubeconfig::read_from(kubeconfig)?,
        &Default::default(),
    )
    .await?;
    let samples: Api<Sample> = Api::all(Client::try_from(config)?);
    let (store, writer) = reflector::store();
    // Managed fields are dropped on all sides of the comparison.
    let stream = watcher(samples, watcher::Config::default().streaming_lists())
        .modify(|sample| sample.managed_fields_mut().clear())
        .reflect(writer)
        .for_each(|event| async {
            if let Err(error) = event {
                eprintln!("{error}");
            }
        });
    tokio::select! {
        () = stream => return Err("the watch ended".into()),
        ready = store.wait_until_ready() => ready?,
    }
    let (seconds, at) = (started.elapsed(), SystemTime::now());
    println!(
        "{}",
        serde_json::json!({
            "at": at.duration_since(UNIX_EPOCH)?.as_secs_f64(),
            "objects": store.state().len(),
            "seconds": seconds.as_secs_f64(),
            "startup": startup.as_secs_f64(),
            "cpu": cpu_time().as_secs_f64(),
            "rss": peak_memory()?,
        })
    );
    Ok(())
}

/// Return the most bytes that this process has held; what getrusage says includes its parent's (Linux).
fn peak_memory() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = line.and_then(|text| text.split_whitespace().next()).ok_or("no VmHWM")?.parse()?;
    Ok(kilobytes * 1024)
}

/// Return the processor time that this process has used.
fn cpu_time() -> Duration {
    // SAFETY: getrusage fills the struct that it is given, and a struct of numbers may be all zeros.
    let found = unsafe {
        let mut found: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut found);
        found
    };
    let time = |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    time(found.ru_utime) + time(found.ru_stime)
}
