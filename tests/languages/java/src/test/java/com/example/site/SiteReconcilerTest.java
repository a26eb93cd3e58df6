package com.example.site;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.javaoperatorsdk.operator.Operator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SiteReconcilerTest {

  private static final Set<String> PURGED = ConcurrentHashMap.newKeySet();
  private static ApiServer apiServer;
  private static KubernetesClient client;
  private static Operator operator;
  private String namespace;

  @BeforeAll
  static void startOperator() throws IOException {
    apiServer = new ApiServer();
    client = new KubernetesClientBuilder().withConfig(apiServer.config()).build();
    try (var definition = Files.newInputStream(Path.of("config", "crd.yaml"))) {
      var created = client.apiextensions().v1().customResourceDefinitions().load(definition).create();
      client
          .resource(created)
          .waitUntilCondition(
              crd ->
                  crd.getStatus() != null
                      && crd.getStatus().getConditions().stream()
                          .anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")),
              20,
              TimeUnit.SECONDS);
    }
    operator = new Operator(overrider -> overrider.withKubernetesClient(client).withCloseClientOnStop(false));
    operator.register(new SiteReconciler(PURGED::add));
    operator.start();
  }

  @AfterAll
  static void stopOperator() throws IOException {
    if (operator != null) {
      operator.stop();
    }
    if (client != null) {
      client.close();
    }
    if (apiServer != null) {
      apiServer.close();
    }
  }

  @BeforeEach
  void createNamespace() {
    var desired = new NamespaceBuilder().withNewMetadata().withGenerateName("site-").endMetadata().build();
    namespace = client.resource(desired).create().getMetadata().getName();
  }

  @Test
  void createsConfigMapThatTheSiteOwns() {
    var site = create(Map.of("index.html", "<h1>Blog</h1>"));
    var page = eventually(pages(), Objects::nonNull);
    assertEquals(Map.of("index.html", "<h1>Blog</h1>"), page.getData());
    assertEquals("en", page.getMetadata().getLabels().get("example.com/language"), "the default of the schema");
    assertEquals(site.getMetadata().getUid(), page.getMetadata().getOwnerReferences().get(0).getUid());
  }

  @Test
  void countsThePagesInTheStatus() {
    create(Map.of("index.html", "<h1>Blog</h1>", "about.html", "<h1>About</h1>"));
    var site = eventually(site(), found -> found != null && found.getStatus() != null);
    assertEquals(new Site.Status(1L, 2), site.getStatus());
  }

  @Test
  void followsChangeOfTheSite() {
    create(Map.of("index.html", "<h1>Blog</h1>"));
    eventually(site(), found -> found != null && found.getStatus() != null);
    site().edit(
        found -> {
          found.setSpec(new Site.Spec(Map.of("start.html", "<h1>Start</h1>"), "de"));
          return found;
        });
    var page = eventually(pages(), found -> found != null && found.getData().containsKey("start.html"));
    assertEquals(Map.of("start.html", "<h1>Start</h1>"), page.getData());
    assertEquals("de", page.getMetadata().getLabels().get("example.com/language"));
  }

  @Test
  void restoresWhatSomeoneElseChangesAndKeepsWhatTheyAdd() {
    create(Map.of("index.html", "<h1>Blog</h1>"));
    eventually(pages(), Objects::nonNull);
    pages().patch(
        PatchContext.of(PatchType.STRATEGIC_MERGE),
        "{\"data\": {\"index.html\": \"<h1>Defaced</h1>\"}, \"metadata\": {\"labels\": {\"team\": \"web\"}}}");
    var page = eventually(pages(), found -> found.getData().get("index.html").equals("<h1>Blog</h1>"));
    assertEquals("web", page.getMetadata().getLabels().get("team"));
  }

  @Test
  void restoresConfigMapThatWasDeleted() {
    create(Map.of("index.html", "<h1>Blog</h1>"));
    var deleted = eventually(pages(), Objects::nonNull).getMetadata().getUid();
    pages().delete();
    eventually(pages(), found -> found != null && !found.getMetadata().getUid().equals(deleted));
  }

  @Test
  void purgesSiteBeforeItIsDeleted() {
    var uid = create(Map.of("index.html", "<h1>Blog</h1>")).getMetadata().getUid();
    var site = eventually(site(), found -> found != null && !found.getMetadata().getFinalizers().isEmpty());
    assertEquals(SiteReconciler.FINALIZER, site.getMetadata().getFinalizers().get(0));
    site().delete();
    eventually(site(), Objects::isNull);
    assertTrue(PURGED.contains(uid));
  }

  @Test
  void apiServerRejectsSiteWithoutPages() {
    var rejected = assertThrows(KubernetesClientException.class, () -> create(Map.of()));
    assertEquals(422, rejected.getCode());
    assertTrue(
        rejected.getMessage().contains("spec.pages in body should have at least 1 properties"), rejected.getMessage());
  }

  private Site create(Map<String, String> pages) {
    var site = new Site();
    site.setMetadata(new ObjectMetaBuilder().withName("blog").withNamespace(namespace).build());
    site.setSpec(new Site.Spec(pages, null));
    return client.resource(site).create();
  }

  private Resource<Site> site() {
    return client.resources(Site.class).inNamespace(namespace).withName("blog");
  }

  private Resource<ConfigMap> pages() {
    return client.configMaps().inNamespace(namespace).withName("blog");
  }

  private static <T> T eventually(Resource<T> resource, Predicate<T> condition) {
    return resource.waitUntilCondition(condition, 20, TimeUnit.SECONDS);
  }
}
