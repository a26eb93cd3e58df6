//! An operator that gives each Site a ConfigMap with its pages.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, KubeSchema, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
    runtime::{
        Controller,
        controller::Action,
        events::{Event, EventType, Recorder},
        finalizer::{self, finalizer},
        watcher,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;

const MANAGER: &str = "site-operator";
pub const FINALIZER: &str = "example.com/cdn";

/// A web site: its pages are served from a ConfigMap.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct SiteSpec {
    /// The HTML of each page by its file name.
    #[x_kube(validation = Rule::new("'index.html' in self").message("a site needs index.html"))]
    pub pages: BTreeMap<String, String>,
    #[serde(default = "english")]
    pub language: String,
}

fn english() -> String {
    "en".to_owned()
}

#[derive(KubeSchema, Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteStatus {
    pub observed_generation: Option<i64>,
    pub pages: Option<i32>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("finalizer: {0}")]
    Finalizer(#[source] Box<finalizer::Error<kube::Error>>),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

/// Run the operator; it stops when the future is dropped.
pub async fn run(client: Client) {
    let sites: Api<Site> = Api::all(client.clone());
    let pages: Api<ConfigMap> = Api::all(client.clone());
    let context = Arc::new(Context {
        recorder: Recorder::new(client.clone(), MANAGER.into()),
        client,
    });
    Controller::new(sites, watcher::Config::default())
        .owns(pages, watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            context,
        )
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("Reconciler error: {error}");
            }
        })
        .await;
}

async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = site.namespace().unwrap_or_default();
    let sites: Api<Site> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&sites, FINALIZER, site, async |event| match event {
        finalizer::Event::Apply(site) => apply(&sites, &site, &context).await,
        finalizer::Event::Cleanup(site) => purge(&site, &context).await,
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn apply(sites: &Api<Site>, site: &Site, context: &Context) -> Result<Action, kube::Error> {
    let name = site.name_any();
    let namespace = site.namespace().unwrap_or_default();
    let parameters = PatchParams::apply(MANAGER).force();
    let page = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some([("example.com/language".to_owned(), site.spec.language.clone())].into()),
            owner_references: Some(site.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        data: Some(site.spec.pages.clone()),
        ..ConfigMap::default()
    };
    Api::<ConfigMap>::namespaced(context.client.clone(), &namespace)
        .patch(&name, &parameters, &Patch::Apply(&page))
        .await?;

    let status = SiteStatus {
        observed_generation: site.metadata.generation,
        pages: i32::try_from(site.spec.pages.len()).ok(),
    };
    if site.status.as_ref() != Some(&status) {
        let patch = json!({"apiVersion": Site::api_version(&()), "kind": Site::kind(&()), "status": status});
        sites
            .patch_status(&name, &parameters, &Patch::Apply(&patch))
            .await?;
    }
    Ok(Action::await_change())
}

/// Report that the pages are removed from a content delivery network, before the Site is deleted.
async fn purge(site: &Site, context: &Context) -> Result<Action, kube::Error> {
    let event = Event {
        type_: EventType::Normal,
        reason: "Purged".to_owned(),
        note: Some(format!("Purged {} pages", site.spec.pages.len())),
        action: "Purge".to_owned(),
        secondary: None,
    };
    context.recorder.publish(&event, &site.object_ref(&())).await?;
    Ok(Action::await_change())
}
