import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  type Informer,
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  type ObjectCache,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
} from "@kubernetes/client-node";
import { GROUP, PLURAL, type Site, VERSION } from "./site.js";

const FIELD_MANAGER = "site-operator";
const RETRY_MILLISECONDS = 200;

/** Gives each Site a ConfigMap with its pages, and keeps it as the Site describes it. */
export class Operator {
  readonly #objects: KubernetesObjectApi;
  readonly #custom: CustomObjectsApi;
  readonly #sites: Informer<Site> & ObjectCache<Site>;
  readonly #pages: Informer<V1ConfigMap> & ObjectCache<V1ConfigMap>;
  readonly #queued = new Set<string>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #worker: Promise<void> | undefined;
  #stopped = false;

  constructor(config: KubeConfig) {
    this.#objects = KubernetesObjectApi.makeApiClient(config);
    this.#custom = config.makeApiClient(CustomObjectsApi);
    const core = config.makeApiClient(CoreV1Api);
    this.#sites = makeInformer<Site>(config, `/apis/${GROUP}/${VERSION}/${PLURAL}`, async () => {
      const list = await this.#custom.listCustomObjectForAllNamespaces({
        group: GROUP,
        version: VERSION,
        plural: PLURAL,
      });
      return list as KubernetesListObject<Site>;
    });
    this.#pages = makeInformer<V1ConfigMap>(config, "/api/v1/configmaps", () =>
      core.listConfigMapForAllNamespaces(),
    );
    this.#watch(this.#sites, (site) => keyOf(site.metadata?.namespace, site.metadata?.name));
    this.#watch(this.#pages, (page) => {
      const owner = page.metadata?.ownerReferences?.find(({ kind, controller }) => kind === "Site" && controller);
      return owner && keyOf(page.metadata?.namespace, owner.name);
    });
  }

  async start(): Promise<void> {
    await this.#sites.start();
    await this.#pages.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timers.forEach(clearTimeout);
    await this.#sites.stop();
    await this.#pages.stop();
    await this.#worker;
  }

  #watch<T extends KubernetesObject>(informer: Informer<T>, key: (object: T) => string | undefined): void {
    const enqueue = (object: T) => {
      const found = key(object);
      if (found) this.#enqueue(found);
    };
    informer.on("add", enqueue);
    informer.on("update", enqueue);
    informer.on("delete", enqueue);
    // The informer of this library ends at the first error: it is started again after a pause.
    informer.on("error", () => this.#later(() => informer.start()));
  }

  #later(callback: () => unknown): void {
    if (this.#stopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, RETRY_MILLISECONDS);
    this.#timers.add(timer);
  }

  #enqueue(key: string): void {
    this.#queued.add(key);
    this.#worker ??= this.#work().finally(() => {
      this.#worker = undefined;
    });
  }

  async #work(): Promise<void> {
    for (const key of this.#queued) {
      if (this.#stopped) return;
      this.#queued.delete(key);
      try {
        await this.#reconcile(key);
      } catch (error) {
        console.error(`Reconciler error site=${key}`, error instanceof ApiException ? error.body : error);
        this.#later(() => this.#enqueue(key));
      }
    }
  }

  async #reconcile(key: string): Promise<void> {
    const [namespace, name] = key.split("/") as [string, string];
    const site = this.#sites.get(name, namespace);
    if (!site || site.metadata?.deletionTimestamp) return;

    const { uid, generation } = site.metadata as { uid: string; generation: number };
    const page: V1ConfigMap & KubernetesObject = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name,
        namespace,
        labels: { "example.com/language": site.spec.language ?? "en" },
        ownerReferences: [
          { apiVersion: `${GROUP}/${VERSION}`, kind: "Site", name, uid, controller: true, blockOwnerDeletion: true },
        ],
      },
      data: site.spec.pages,
    };
    await this.#objects.patch(page, undefined, undefined, FIELD_MANAGER, true, PatchStrategy.ServerSideApply);

    const status = { observedGeneration: generation, pages: Object.keys(site.spec.pages).length };
    if (site.status?.observedGeneration === status.observedGeneration && site.status.pages === status.pages) return;
    await this.#custom.patchNamespacedCustomObjectStatus(
      { group: GROUP, version: VERSION, plural: PLURAL, namespace, name, body: { status } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
  }
}

function keyOf(namespace: string | undefined, name: string | undefined): string {
  return `${namespace}/${name}`;
}
