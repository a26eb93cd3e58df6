mod apiserver;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use apiserver::ApiServer;
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        conditions,
        wait::{Condition, await_condition},
    },
};
use serde_json::json;
use site_operator::{FINALIZER, Site, SiteSpec};

#[tokio::test]
async fn keeps_the_config_map_as_the_site_describes_it() -> Result<()> {
    with_operator(async |client| {
        let sites: Api<Site> = Api::default_namespaced(client.clone());
        let pages: Api<ConfigMap> = Api::default_namespaced(client);
        let site = json!({
            "apiVersion": "example.com/v1",
            "kind": "Site",
            "metadata": {"name": "blog"},
            "spec": {"pages": {"index.html": "<h1>Blog</h1>"}},
        });
        let site = sites
            .patch("blog", &PatchParams::apply("test"), &Patch::Apply(site))
            .await?;
        assert_eq!(site.spec.language, "en", "the default of the schema");

        let page = eventually(&pages, |page: Option<&ConfigMap>| page.is_some())
            .await?
            .context("no ConfigMap")?;
        assert_eq!(page.data.as_ref(), Some(&site.spec.pages));
        assert_eq!(page.labels()["example.com/language"], "en");
        assert_eq!(
            page.owner_references(),
            [site.controller_owner_ref(&()).context("the Site has no UID")?]
        );
        let site = eventually(&sites, |site: Option<&Site>| {
            site.is_some_and(|site| site.status.is_some())
        })
        .await?;
        let status = site.context("no Site")?.status.context("no status")?;
        assert_eq!((status.observed_generation, status.pages), (Some(1), Some(1)));

        // What someone else changes is restored, what they add is kept.
        let patch =
            json!({"data": {"index.html": "<h1>Defaced</h1>"}, "metadata": {"labels": {"team": "web"}}});
        pages
            .patch("blog", &PatchParams::default(), &Patch::Strategic(patch))
            .await?;
        let restored = eventually(&pages, has_page("<h1>Blog</h1>"))
            .await?
            .context("no ConfigMap")?;
        assert_eq!(restored.labels()["team"], "web");

        let patch = json!({"spec": {"pages": {"index.html": "<h1>New</h1>"}}});
        sites
            .patch("blog", &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        eventually(&pages, has_page("<h1>New</h1>")).await?;

        pages.delete("blog", &Default::default()).await?;
        let uid = page.uid();
        eventually(&pages, move |page: Option<&ConfigMap>| {
            page.is_some_and(|page| page.uid() != uid)
        })
        .await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn purges_a_site_before_it_is_deleted() -> Result<()> {
    with_operator(async |client| {
        let sites: Api<Site> = Api::default_namespaced(client.clone());
        let events: Api<Event> = Api::default_namespaced(client);
        let site = sites.create(&Default::default(), &blog()).await?;
        eventually(&sites, |site: Option<&Site>| {
            site.is_some_and(|site| site.finalizers().iter().any(|name| name == FINALIZER))
        })
        .await?;

        sites.delete("blog", &Default::default()).await?;
        eventually(&sites, |site: Option<&Site>| site.is_none()).await?;
        let published = events.list(&Default::default()).await?.items;
        assert_eq!(published.len(), 1);
        assert_eq!(published[0].note.as_deref(), Some("Purged 1 pages"));
        assert_eq!(
            published[0]
                .regarding
                .as_ref()
                .and_then(|about| about.uid.clone()),
            site.uid()
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_api_server_rejects_a_site_without_a_start_page() -> Result<()> {
    with_operator(async |client| {
        let sites: Api<Site> = Api::default_namespaced(client);
        let mut site = blog();
        site.spec.pages = [("about.html".to_owned(), "<h1>About</h1>".to_owned())].into();
        let Err(kube::Error::Api(rejected)) = sites.create(&Default::default(), &site).await else {
            bail!("the Site was not rejected");
        };
        assert_eq!(rejected.code, 422);
        assert!(
            rejected.message.ends_with("a site needs index.html"),
            "{}",
            rejected.message
        );
        Ok(())
    })
    .await
}

/// Run a test with an API server of its own, on which the operator runs.
async fn with_operator(test: impl AsyncFnOnce(Client) -> Result<()>) -> Result<()> {
    let server = ApiServer::start().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client.clone());
    let definition = definitions.create(&Default::default(), &Site::crd()).await?;
    await_condition(
        definitions,
        &definition.name_any(),
        conditions::is_crd_established(),
    )
    .await?;
    let operator = tokio::spawn(site_operator::run(server.client.clone()));
    let result = test(server.client.clone()).await;
    operator.abort();
    result
}

fn blog() -> Site {
    let pages = [("index.html".to_owned(), "<h1>Blog</h1>".to_owned())].into();
    Site::new(
        "blog",
        SiteSpec {
            pages,
            language: "de".to_owned(),
        },
    )
}

fn has_page(html: &'static str) -> impl Condition<ConfigMap> {
    move |page: Option<&ConfigMap>| {
        page.and_then(|page| page.data.as_ref())
            .is_some_and(|data| data["index.html"] == html)
    }
}

/// Wait until the object `blog` meets the condition.
async fn eventually<K>(api: &Api<K>, condition: impl Condition<K>) -> Result<Option<K>>
where
    K: Clone + std::fmt::Debug + Resource + serde::de::DeserializeOwned + Send + 'static,
{
    let waiting = await_condition(api.clone(), "blog", condition);
    Ok(tokio::time::timeout(Duration::from_secs(20), waiting).await??)
}
