//! The benchmarked operator on kube-rs: each Echo becomes an owned ConfigMap and a status, by server-side apply.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Config, CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize};

const WORKERS: u16 = 16;

/// What to echo.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "bench.kubewright.dev", version = "v1", kind = "Echo", namespaced)]
#[kube(status = "EchoStatus", schema = "disabled")]
pub struct EchoSpec {
    message: String,
}

/// What was echoed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EchoStatus {
    #[serde(default)]
    echoed: String,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the Echo has no {0}")]
    Missing(&'static str),
}

async fn reconcile(echo: Arc<Echo>, client: Arc<Client>) -> Result<Action, Failure> {
    let namespace = echo.namespace().ok_or(Failure::Missing("namespace"))?;
    let owner = echo.controller_owner_ref(&()).ok_or(Failure::Missing("uid"))?;
    let name = echo.name_any();
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(BTreeMap::from([("bench".into(), "echo".into())])),
            owner_references: Some(vec![owner]),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("message".into(), echo.spec.message.clone())])),
        ..Default::default()
    };
    let applying = PatchParams::apply("echo").force();
    let children: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    children.patch(&name, &applying, &Patch::Apply(&child)).await?;
    let status = EchoStatus { echoed: echo.spec.message.clone() };
    if echo.status.as_ref() != Some(&status) {
        let echoes: Api<Echo> = Api::namespaced((*client).clone(), &namespace);
        let document = serde_json::json!({
            "apiVersion": Echo::api_version(&()),
            "kind": Echo::kind(&()),
            "status": status,
        });
        echoes.patch_status(&name, &applying, &Patch::Apply(&document)).await?;
    }
    Ok(Action::await_change())
}

fn retry(_: Arc<Echo>, _: &Failure, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = std::env::args().nth(1).ok_or("give a kubeconfig")?;
    let config = Config::from_custom_kubeconfig(
        kube::config::Kubeconfig::read_from(kubeconfig)?,
        &Default::default(),
    )
    .await?;
    let client = Client::try_from(config)?;
    let watched = watcher::Config::default().streaming_lists();
    Controller::new(Api::<Echo>::all(client.clone()), watched.clone())
        .owns(Api::<ConfigMap>::all(client.clone()), watched)
        .with_config(controller::Config::default().concurrency(WORKERS))
        .run(reconcile, retry, Arc::new(client))
        .for_each(|done| async move {
            if let Err(error) = done {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}
