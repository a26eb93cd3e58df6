import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  KubernetesObjectApi,
  loadYaml,
  PatchStrategy,
  setHeaderOptions,
  type V1CustomResourceDefinition,
} from "@kubernetes/client-node";
import { Operator } from "../src/operator.js";
import { GROUP, PLURAL, type Site, VERSION } from "../src/site.js";
import { ApiServer } from "./apiserver.js";

const SITES = { group: GROUP, version: VERSION, plural: PLURAL };
/** The codes of an object that does not exist yet, and of a kind whose storage is not ready. */
const TEMPORARY = [404, 429];
let apiServer: ApiServer;
let operator: Operator;
let core: CoreV1Api;
let custom: CustomObjectsApi;
let namespace: string;

before(async () => {
  apiServer = await ApiServer.start();
  core = apiServer.config.makeApiClient(CoreV1Api);
  custom = apiServer.config.makeApiClient(CustomObjectsApi);
  const objects = KubernetesObjectApi.makeApiClient(apiServer.config);
  const definition = loadYaml<V1CustomResourceDefinition>(
    await readFile(new URL("../../config/crd.yaml", import.meta.url), "utf8"),
  );
  await objects.create(definition);
  await eventually(() => custom.listCustomObjectForAllNamespaces(SITES));
  operator = new Operator(apiServer.config);
  await operator.start();
});

after(async () => {
  await operator?.stop();
  await apiServer?.stop();
});

beforeEach(async () => {
  const created = await core.createNamespace({ body: { metadata: { generateName: "site-" } } });
  namespace = created.metadata?.name as string;
});

test("creates a ConfigMap that the Site owns", async () => {
  const site = await create({ pages: { "index.html": "<h1>Blog</h1>" } });
  const page = await eventually(() => core.readNamespacedConfigMap({ namespace, name: "blog" }));
  assert.deepEqual(page.data, { "index.html": "<h1>Blog</h1>" });
  assert.equal(page.metadata?.labels?.["example.com/language"], "en", "the default of the schema");
  assert.equal(page.metadata?.ownerReferences?.[0]?.uid, site.metadata?.uid);
  assert.equal(page.metadata?.managedFields?.[0]?.manager, "site-operator");
});

test("counts the pages in the status", async () => {
  await create({ pages: { "index.html": "<h1>Blog</h1>", "about.html": "<h1>About</h1>" } });
  const site = await eventually(read, (found) => found.status?.pages === 2);
  assert.equal(site.status?.observedGeneration, 1);
});

test("follows a change of the Site", async () => {
  await create({ pages: { "index.html": "<h1>Blog</h1>" } });
  await eventually(read, (found) => found.status?.pages === 1);
  await custom.patchNamespacedCustomObject(
    { ...SITES, namespace, name: "blog", body: { spec: { pages: { "index.html": null, "start.html": "<h1>Start</h1>" } } } },
    setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
  );
  await eventually(read, (found) => found.status?.observedGeneration === 2);
  const page = await core.readNamespacedConfigMap({ namespace, name: "blog" });
  assert.deepEqual(page.data, { "start.html": "<h1>Start</h1>" });
});

test("restores what someone else changes, and keeps what they add", async () => {
  await create({ pages: { "index.html": "<h1>Blog</h1>" } });
  await eventually(() => core.readNamespacedConfigMap({ namespace, name: "blog" }));
  await core.patchNamespacedConfigMap(
    { namespace, name: "blog", body: { data: { "index.html": "<h1>Defaced</h1>" }, metadata: { labels: { team: "web" } } } },
    setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch),
  );
  const page = await eventually(
    () => core.readNamespacedConfigMap({ namespace, name: "blog" }),
    (found) => found.data?.["index.html"] === "<h1>Blog</h1>",
  );
  assert.equal(page.metadata?.labels?.["team"], "web");
});

test("restores a ConfigMap that was deleted", async () => {
  await create({ pages: { "index.html": "<h1>Blog</h1>" } });
  const deleted = await eventually(() => core.readNamespacedConfigMap({ namespace, name: "blog" }));
  await core.deleteNamespacedConfigMap({ namespace, name: "blog" });
  await eventually(
    () => core.readNamespacedConfigMap({ namespace, name: "blog" }),
    (found) => found.metadata?.uid !== deleted.metadata?.uid,
  );
});

test("the API server rejects a Site without pages", async () => {
  const rejected = await create({ pages: {} }).catch((error: unknown) => error);
  assert.ok(rejected instanceof ApiException);
  assert.equal(rejected.code, 422);
  assert.match(rejected.body, /spec\.pages: Invalid value: 0: spec\.pages in body should have at least 1 properties/);
});

async function create(spec: Site["spec"]): Promise<Site> {
  const body: Site = { apiVersion: `${GROUP}/${VERSION}`, kind: "Site", metadata: { name: "blog" }, spec };
  return (await custom.createNamespacedCustomObject({ ...SITES, namespace, body })) as Site;
}

async function read(): Promise<Site> {
  return (await custom.getNamespacedCustomObject({ ...SITES, namespace, name: "blog" })) as Site;
}

/** Repeat a request until it succeeds and its answer is accepted, and return the answer. */
async function eventually<T>(request: () => Promise<T>, accepts: (answer: T) => boolean = () => true): Promise<T> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    let last: unknown;
    try {
      const answer = await request();
      if (accepts(answer)) return answer;
      last = answer;
    } catch (error) {
      if (!(error instanceof ApiException) || !TEMPORARY.includes(error.code)) throw error;
      last = error.body;
    }
    if (Date.now() > deadline) assert.fail(`still not as expected after 20 s: ${JSON.stringify(last)}`);
    await sleep(20);
  }
}
